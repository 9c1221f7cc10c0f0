/*
 * assert evaluates a soft point once, whatever it repeats for the compiler.
 * duration: 1s
 * trace: 0 main start
 * trace: 0 main arrive @p
 * trace: 10ms main release @p, end
 * output: 10
 */
#include <cilktc.h>
#include <assert.h>

int main(void)
{
	assert(sdelay(10, ms) == 0); /* @p */
	printf("%ld\n", (long)gettime(ms));
	return 0;
}
