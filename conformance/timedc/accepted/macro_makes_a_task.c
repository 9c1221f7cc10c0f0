/*
 * Macros may expand to tasks and to their calls.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 fast start, arrive @f
 * trace: 5ms fast release @f, arrive @f
 * trace: 10ms fast release @f, end
 * trace: 0 slow start, arrive @s
 * trace: 20ms slow release @s, arrive @s
 * trace: 40ms slow release @s, end
 */
#include <cilktc.h>

#define TASK(name, period) \
	task name() \
	{ \
		for (int i = 0; i < 2; i++) \
			fdelay(period, ms); \
	}
#define START(name) name()

TASK(fast, 5) /* @f */
TASK(slow, 20) /* @s */

int main(void)
{
	START(fast);
	START(slow);
}
