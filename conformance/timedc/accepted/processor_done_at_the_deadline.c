/*
 * Work that is done at the very instant of its deadline is on time, preempted or not; a nanosecond
 * more is aborted.
 * duration: 25ms
 * cores: 1
 * trace: 0 main start, end
 * trace: 0 high start
 * trace: 3ms high arrive @h
 * trace: 20ms high release @h, end
 * trace: 0 exact start
 * trace: 8ms exact arrive @e, release @e, end
 * trace: 0 above start
 * trace: 10ms above abort @a, release @a, end
 */
#include <cilktc.h>

__attribute__((exectime(3, ms))) static void three(void) { }
__attribute__((exectime(5, ms))) static void five(void) { }
__attribute__((exectime(2000001, ns))) static void two(void) { }

task high() { spriority(3); three(); sdelay(20, ms); /* @h */ }
task exact() { spriority(2); five(); fdelay(8, ms); /* @e */ }
task above() { spriority(1); two(); fdelay(10, ms); /* @a */ }

int main(void)
{
	above(); exact(); high();
}
