/*
 * Periods may come from arrays, unions, bit-fields, enumerations and designated initialisers.
 * duration: 1s
 * trace: 0 main start, arrive @p
 * trace: 1ms main release @p, arrive @p
 * trace: 3ms main release @p, arrive @p
 * trace: 6ms main release @p, arrive @q
 * trace: 10ms main release @q, arrive @r
 * trace: 15ms main release @r, arrive @s
 * trace: 21ms main release @s, end
 */
#include <cilktc.h>

enum span { SHORT = 1, LONG = 6 };
struct plan { int span[3]; struct { unsigned bits : 3; } in; };
union either { int number; char octets[8]; };

int main(void)
{
	static const struct plan plan = {.span = {[0] = SHORT, [2] = 3, [1] = 2}, .in.bits = 5};
	union either either = {.number = 4};
	const enum span span = LONG;

	for (size_t i = 0; i < sizeof plan.span / sizeof *plan.span; i++)
		sdelay(plan.span[i], ms); /* @p */
	sdelay(either.number, ms); /* @q */
	sdelay(plan.in.bits, ms); /* @r */
	sdelay(span, ms); /* @s */
	return 0;
}
