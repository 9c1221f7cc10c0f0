/*
 * X-macros may make channels, tasks and their starts from one list.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 task_a start, write a, arrive @l
 * trace: 10ms task_a release @l, end
 * trace: 0 task_b start, write b, arrive @l.2
 * trace: 20ms task_b release @l.2, end
 * trace: 0 task_c start, write c, arrive @l.3
 * trace: 30ms task_c release @l.3, end
 * trace: 0 sum start, read a, read b, read c, end
 * output: 60
 */
#include <cilktc.h>

#define LIST(X) X(a, 10) X(b, 20) X(c, 30)

#define CHANNEL(name, period) int fifochannel(name);
#define TASK(name, period) task task_##name() { cwrite(name, period); fdelay(period, ms); }
#define START(name, period) task_##name();
#define ADD(name, period) { int got; cread(name, got); total += got; }

LIST(CHANNEL)
LIST(TASK) /* @l */

task sum()
{
	int total = 0;

	LIST(ADD)
	printf("%d\n", total);
}

int main(void)
{
	LIST(START)
	sum();
}
