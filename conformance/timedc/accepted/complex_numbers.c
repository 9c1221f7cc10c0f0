/*
 * Complex numbers keep their values over an abort.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 turn start
 * trace: 10ms turn abort @p, release @p, end
 * output: 1 2 3 4
 */
#include <cilktc.h>

__attribute__((exectime(20, ms))) static void work(void) { }

task turn()
{
	double _Complex z = 1;
	_Complex float w = 3;

	__imag__ z = 2;
	__imag__ w = 4;
	work();
	z = 0;
	fdelay(10, ms); /* @p */
	printf("%g %g %g %g\n", __real__ z, __imag__ z, __real__ w, __imag__ w);
}

int main(void)
{
	turn();
}
