/*
 * Of equals, here those without a priority, the first continues until it waits, over the end of a
 * function and a point that it passes late. Whoever was preempted is still before the others.
 * duration: 50ms
 * cores: 1
 * trace: 0 main start, end
 * trace: 0 a start
 * trace: 5ms a arrive @a 1ms, release @a 1ms
 * trace: 8ms a arrive @z
 * trace: 25ms a release @z, end
 * trace: 0 b start
 * trace: 10ms b arrive @b
 * trace: 20ms b release @b, end
 * trace: 0 urgent start, arrive @u
 * trace: 1ms urgent release @u
 * trace: 2ms urgent arrive @v
 * trace: 11ms urgent release @v, end
 */
#include <cilktc.h>

__attribute__((exectime(1, ms))) static void one(void) { }
__attribute__((exectime(2, ms))) static void two(void) { }

task a()
{
	two();
	two();
	sdelay(4, ms); /* @a */
	two();
	one();
	sdelay(20, ms); /* @z */
}
task b() { two(); sdelay(20, ms); /* @b */ }
task urgent()
{
	spriority(1);
	sdelay(1, ms); /* @u */
	one();
	sdelay(10, ms); /* @v */
}

int main(void)
{
	a(); b(); urgent();
}
