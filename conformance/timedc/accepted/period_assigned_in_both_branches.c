/*
 * A timing argument that is assigned on every path is definitely assigned.
 * duration: 1s
 * trace: 0 main start, arrive @p
 * trace: 30ms main release @p, arrive @q
 * trace: 35ms main release @q, arrive @r
 * trace: 42ms main release @r, end
 */
#include <cilktc.h>

static void fill(int *p)
{
	*p = 5;
}

int main(int argc, char **argv)
{
	int p, q, r;

	(void)argv;
	if (argc > 1)
		p = 20;
	else
		p = 30;
	sdelay(p, ms); /* @p */
	fill(&q);
	sdelay(q, ms); /* @q */
	switch (argc) {
	case 1:
		r = 7;
		break;
	default:
		r = 8;
	}
	sdelay(r, ms); /* @r */
	return 0;
}
