/*
 * Declared execution times beyond what a policy's tasks have time for.
 * duration: 30ms
 * trace: 0 main start, end
 * trace: 0 busy start
 * trace: 10ms..20ms/10ms busy abort @p, release @p
 */
#include <cilktc.h>

__attribute__((exectime(15, ms))) static void work(void) { }

task busy()
{
	spolicy(EDF); /* warning: OB4102 */
	while (1) {
		work();
		fdelay(10, ms); /* @p */
	}
}

int main(void)
{
	busy();
}
