/*
 * Functions have types: C has no implicit int.
 */
#include <cilktc.h>

struct pair { int a; } typed(void)
{
	return (struct pair){1};
}

_Static_assert(sizeof(int) >= 2, "int");
static int table[] = {1}, (*pointer)(int) = 0;

static step(n) /* error: OB4013 */
	int n;
{
	fdelay(10, ms);
}

main() /* error: OB4013 */
{
	typed();
	step(table[0]);
	pointer = 0;
}
