/*
 * Declarations of all shapes: function pointers, arrays of them, typedefs, several in a line.
 * duration: 1s
 * trace: 0 main start, arrive @p
 * trace: 9ms main release @p, end
 */
#include <cilktc.h>

typedef int span_t, *span_p, span_f(span_t);
static span_f triple, *chosen = triple, *table[2] = {triple, triple};
static int (*(*deep(void))[2])(int) { return &table; }

static span_t triple(span_t n) { return 3 * n; }

int main(void)
{
	span_t n = 1, *p = &n, at[1][2] = {{1, 2}};
	span_p q = p;

	sdelay(chosen(*q) * (*deep())[at[0][0]](n), ms); /* @p */
	return 0;
}
