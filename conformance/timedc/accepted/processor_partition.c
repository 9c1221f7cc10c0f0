/*
 * All tasks of a program that is bound to no core share core 0, however many there are. Sleeping
 * and waiting take no processor.
 * duration: 40ms
 * cores: 4
 * trace: 0 main start, end
 * trace: 0 a start
 * trace: 4ms a arrive @a
 * trace: 20ms a release @a, end
 * trace: 0 b start
 * trace: 8ms b arrive @b
 * trace: 20ms b release @b, end
 * trace: 0 c start
 * trace: 9ms c arrive @c
 * trace: 20ms c release @c, end
 */
#include <cilktc.h>
#include <unistd.h>

__attribute__((exectime(4, ms))) static void four(void) { }

task a() { spriority(9); four(); sdelay(20, ms); /* @a */ }
task b() { spriority(8); four(); sdelay(20, ms); /* @b */ }
task c() { spriority(7); usleep(9000); sdelay(20, ms); /* @c */ }

int main(void)
{
	a(); b(); c();
}
