/*
 * A label or a case may stand directly before a firm point.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start, arrive @p
 * trace: 10ms worker release @p, arrive @q
 * trace: 15ms worker release @q, arrive @p
 * trace: 25ms worker release @p, arrive @q
 * trace: 30ms worker release @q, end
 */
#include <cilktc.h>

task worker()
{
	int n = 0;

again: fdelay(10, ms); /* @p */
	switch (n) {
	case 0:
	case 1: fdelay(5, ms); /* @q */
	}
	if (++n < 2) goto again;
}

int main(void)
{
	worker();
}
