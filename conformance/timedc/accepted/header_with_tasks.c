/*
 * A header may define tasks, channels and static inline functions with points; places in it carry
 * its name.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 blinker start, arrive header_with_tasks.h:@b
 * trace: 25ms blinker release header_with_tasks.h:@b, arrive header_with_tasks.h:@b
 * trace: 50ms blinker release header_with_tasks.h:@b, end
 * trace: 0 user start, arrive header_with_tasks.h:@i
 * trace: 7ms user release header_with_tasks.h:@i, write lamp, end
 */
#include <cilktc.h>
#include "with/header_with_tasks.h"

task user()
{
	rest(7);
	cwrite(lamp, 1);
}

int main(void)
{
	blinker();
	user();
}
