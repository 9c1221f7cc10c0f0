/*
 * Earliest deadline first uses a processor to the full, which no fixed priorities can do here: 2 of
 * 4 ms and 3 of 6 ms. Of equal deadlines the one that came first continues.
 * duration: 24ms
 * cores: 1
 * trace: 0 main start, end
 * trace: 0 a start
 * trace: 2ms..14ms/12ms a arrive @a
 * trace: 7ms..19ms/12ms a arrive @a
 * trace: 12ms a arrive @a
 * trace: 4ms..20ms/4ms a release @a
 * trace: 0 b start
 * trace: 5ms..17ms/12ms b arrive @b
 * trace: 10ms..22ms/12ms b arrive @b
 * trace: 6ms..18ms/6ms b release @b
 */
#include <cilktc.h>

__attribute__((exectime(2, ms))) static void two(void) { }
__attribute__((exectime(3, ms))) static void three(void) { }

task a() { spolicy(EDF); while (1) { two(); sdelay(4, ms); /* @a */ } }
task b() { spolicy(EDF); while (1) { three(); sdelay(6, ms); /* @b */ } }

int main(void)
{
	b(); a();
}
