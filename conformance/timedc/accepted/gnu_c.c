/*
 * What else GNU C has: attributes, asm, labels as values, ranges, __extension__.
 * duration: 1s
 * trace: 0 main start, arrive @p
 * trace: 2ms main release @p, arrive @p
 * trace: 4ms main release @p, end
 */
#include <cilktc.h>

static __inline__ __attribute__((always_inline, unused)) int next(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

struct __attribute__((packed)) odd { char c; long l; } odd[2] = {[0 ... 1] = {'c', 2}};

int main(void)
{
	void *there = &&again;
	int n = 0;

again:
	sdelay(odd[n].l, ms); /* @p */
	n = next(n);
	if (n < 2)
		goto *there;
	return __extension__ 0;
}
