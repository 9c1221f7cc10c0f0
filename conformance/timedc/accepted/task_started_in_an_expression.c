/*
 * A call of a task starts it wherever it stands: in a branch, behind a comma, in a function.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 one start, arrive @a
 * trace: 1ms one release @a, end
 * trace: 0 two start, arrive @b
 * trace: 2ms two release @b, end
 * trace: 0 three start, arrive @c
 * trace: 3ms three release @c, end
 */
#include <cilktc.h>

task one() { sdelay(1, ms); /* @a */ }
task two() { sdelay(2, ms); /* @b */ }
task three() { sdelay(3, ms); /* @c */ }

static void start(int which)
{
	if (which == 3)
		three();
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc == 1)
		one(), two();
	start(3);
}
