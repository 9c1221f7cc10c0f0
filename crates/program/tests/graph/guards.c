/* Which code the deadlines leave. */
int fifochannel(c);
pthread_mutex_t bus;
task f(int n)
{
	int v;
	first();
	ftp(10, 5, ms);
	while (n--) {
		critical {
			cread(c, v);
		}
		work();
		if (v)
			skipdelay;
		pthread_mutex_lock(&bus);
		__attribute__((exectime(3, ms)));
		pthread_mutex_unlock(&bus);
		hdelay(20, ms);
		gettime(ms);
		soft();
		sdelay(1, ms);
	}
	while (1)
		improve();
	fdelay(30, ms);
	after();
	if (v)
		exit(1);
	stp(5, infty, ms);
}
