/*
 * A segment that waits for its processor is aborted at its deadline, with what it has done by then.
 * Who has the processor notices nothing.
 * duration: 26ms
 * cores: 1
 * trace: 0 main start, end
 * trace: 0 high start
 * trace: 3ms..23ms/5ms high arrive @h
 * trace: 5ms..25ms/5ms high release @h
 * trace: 0 low start
 * trace: 8ms..24ms/8ms low abort @l, release @l
 */
#include <cilktc.h>

__attribute__((exectime(3, ms))) static void three(void) { }
__attribute__((exectime(6, ms))) static void six(void) { }

task high() { spriority(2); while (1) { three(); sdelay(5, ms); /* @h */ } }
task low() { spriority(1); while (1) { six(); fdelay(8, ms); /* @l */ } }

int main(void)
{
	low(); high();
}
