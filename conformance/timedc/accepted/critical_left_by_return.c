/*
 * return may leave a critical block and with it the task.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start, arrive @p
 * trace: 10ms worker release @p, arrive @p
 * trace: 20ms worker release @p, end
 * output: out
 */
#include <cilktc.h>

task worker()
{
	int rounds = 0;

	while (1) {
		critical {
			if (rounds++ == 2) {
				puts("out");
				return NULL;
			}
		}
		fdelay(10, ms); /* @p */
	}
}

int main(void)
{
	worker();
}
