/*
 * struct tags, members, enumerators and macros may be called like constructs.
 * duration: 1s
 * trace: 0 main start, arrive @p
 * trace: 4ms main release @p, end
 * output: 1 2 3
 */
#include <cilktc.h>

struct task { int task, spolicy; };
struct sdelay { struct task fdelay; };
union critical { int cread; };
#define skip(x) (x)

static int nelem_of(struct sdelay *p)
{
	return p->fdelay.task;
}

int main(void)
{
	struct sdelay s = {.fdelay = {.task = 1, .spolicy = 2}};
	union critical u = {3};

	sdelay(skip(4), ms); /* @p */
	printf("%d %d %d\n", nelem_of(&s), s.fdelay.spolicy, u.cread);
	return 0;
}
