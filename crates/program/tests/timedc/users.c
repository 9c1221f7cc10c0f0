/* Names that are the user's, declarations of tasks, execution times, odd spacing. */
struct task { int critical; };
static int sec = 3, us, nelem = 4;
long gettime(int unit);
task later(int n);
extern int fifochannel(far);
__attribute__((exectime(1, 2, ms), noinline)) static int measure(int n)
{
	struct task task = {n};
	int ms = 5;

	__attribute__((exectime(3, us)));
	return task.critical + ms + (int)gettime(sec);
}

task	user ( void )
{
	for (int n = 1, k = measure(1) ; n < 5 ; n ++)
		{ if (n & k) fdelay ( n , ms ) ; us += measure(n); }
	int (*fdelay)(int) = measure;
	us = fdelay(nelem);
	cwrite(far, us);
}

void stepped(int n)
{
	critical
	{
		measure(n);
	}
	if (n) hdelay(5, ms); else fdelay(5, ms);
}

task steps(void)
{
	int n = 0;

	while (1)
		stepped(n++);
}

int main(int argc, char **argv)
{
	user(); later ( argc ); steps();
	return argv[0] == 0;
}
