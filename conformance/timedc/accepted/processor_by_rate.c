/*
 * On one processor tasks preempt each other by rate, and respond as theory says: 1 of 4, 2 of 6 and
 * 3 of 12 ms after 1, 3 and 10 ms at most (Joseph and Pandya, 1986).
 * duration: 24ms
 * cores: 1
 * trace: 0 main start, end
 * trace: 0 quick start
 * trace: 1ms..21ms/4ms quick arrive @q
 * trace: 4ms..20ms/4ms quick release @q
 * trace: 0 middle start
 * trace: 3ms..15ms/12ms middle arrive @m
 * trace: 8ms..20ms/12ms middle arrive @m
 * trace: 6ms..18ms/6ms middle release @m
 * trace: 0 slow start
 * trace: 10ms..22ms/12ms slow arrive @s
 * trace: 12ms slow release @s
 */
#include <cilktc.h>

__attribute__((exectime(1, ms))) static void one(void) { }
__attribute__((exectime(2, ms))) static void two(void) { }
__attribute__((exectime(3, ms))) static void three(void) { }

task slow() { spolicy(FIFO_RM); while (1) { three(); sdelay(12, ms); /* @s */ } }
task middle() { spolicy(FIFO_RM); while (1) { two(); sdelay(6, ms); /* @m */ } }
task quick() { spolicy(FIFO_RM); while (1) { one(); sdelay(4, ms); /* @q */ } }

int main(void)
{
	slow(); middle(); quick();
}
