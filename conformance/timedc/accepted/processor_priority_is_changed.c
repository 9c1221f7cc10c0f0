/*
 * The priority counts that a task has when its work begins. A deadline, under EDF, comes before
 * all.
 * duration: 40ms
 * cores: 1
 * trace: 0 main start, end
 * trace: 0 a start
 * trace: 6500us a arrive @a
 * trace: 20ms a release @a, end
 * trace: 0 b start
 * trace: 4ms b arrive @b
 * trace: 20ms b release @b, end
 * trace: 0 c start
 * trace: 8500us c arrive @c
 * trace: 20ms c release @c, end
 * trace: 0 d start, arrive @d
 * trace: 4500us d release @d
 * trace: 5ms d arrive @e
 * trace: 14500us d release @e, end
 */
#include <cilktc.h>

__attribute__((exectime(2, ms))) static void two(void) { }
__attribute__((exectime(500, us))) static void half(void) { }

task a() { spriority(50); two(); spriority(10); two(); sdelay(20, ms); /* @a */ }
task b() { spriority(20); two(); sdelay(20, ms); /* @b */ }
task c() { spriority(5); two(); sdelay(20, ms); /* @c */ }
task d()
{
	spolicy(EDF);
	sdelay(4500, us); /* @d */
	half();
	sdelay(10, ms); /* @e */
}

int main(void)
{
	c(); b(); a(); d();
}
