/*
 * A switch may choose between branches that end in firm points with deadlines of their own.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 modes start
 * trace: 10ms modes abort @a, release @a
 * trace: 20ms modes arrive @b
 * trace: 30ms modes release @b
 * trace: 35ms modes arrive @c
 * trace: 60ms modes release @c, end
 */
#include <cilktc.h>

__attribute__((exectime(15, ms))) static void long_step(void) { }
__attribute__((exectime(10, ms))) static void middle_step(void) { }
__attribute__((exectime(5, ms))) static void short_step(void) { }

task modes()
{
	for (int mode = 0; mode < 3; mode++) {
		switch (mode) {
		case 0:
			long_step();
			fdelay(10, ms); /* @a */
			break;
		case 1:
			middle_step();
			fdelay(20, ms); /* @b */
			break;
		default:
			short_step();
			fdelay(30, ms); /* @c */
		}
	}
}

int main(void)
{
	modes();
}
