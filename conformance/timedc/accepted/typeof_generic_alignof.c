/*
 * typeof, _Generic, sizeof, _Alignas, _Static_assert and __builtins around constructs.
 * duration: 1s
 * trace: 0 main start, arrive @p
 * trace: 4ms main release @p, arrive @q
 * trace: 6ms main release @q, end
 */
#include <cilktc.h>

#define SPAN_OF(x) _Generic((x), int: 4, long: 8, default: 1)

_Static_assert(sizeof(int) == 4, "an int");

int main(void)
{
	_Alignas(16) typeof(int) n = 0;
	__typeof__(n) two = 2;

	if (__builtin_expect(n == 0, 1))
		sdelay(SPAN_OF(n), ms); /* @p */
	sdelay(__builtin_choose_expr(1, two, 9), ms); /* @q */
	return 0;
}
