/*
 * When the run is over, tasks end at their next timing point or channel operation, and the program
 * with status 0.
 * duration: 35ms
 * trace: 0 main start, end
 * trace: 0 ticker start, write ticks, arrive @p
 * trace: 10ms..30ms/10ms ticker release @p, write ticks, arrive @p
 * trace: 0 listener start
 * trace: 0..30ms/10ms listener read ticks
 * trace: 0 waiter start
 * output: 0
 * output: 1
 * output: 2
 * output: 3
 */
#include <cilktc.h>

int fifochannel(ticks);
int fifochannel(silent);

task ticker()
{
	for (int i = 0;; i++) {
		cwrite(ticks, i);
		sdelay(10, ms); /* @p */
	}
}

task listener()
{
	int n;

	while (1) {
		cread(ticks, n);
		printf("%d\n", n);
	}
}

task waiter()
{
	int n;

	cread(silent, n);
	printf("never %d\n", n);
}

int main(void)
{
	ticker();
	listener();
	waiter();
}
