/*
 * An abort that has waited in a critical block does not take effect where break, goto or return
 * leave it for code that no point guards.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 breaks start
 * trace: 20ms breaks abort @p 10ms, release @p 10ms
 * trace: 60ms breaks end
 * trace: 0 jumps start
 * trace: 20ms jumps end
 * trace: 0 returns start
 * trace: 20ms returns end
 * output: left at 40
 */
#include <cilktc.h>

__attribute__((exectime(20, ms))) static void work(void) { }

task breaks()
{
	int rounds = 0;

	while (1) {
		critical {
			work();
			if (rounds++ == 1)
				break;
		}
		fdelay(10, ms); /* @p */
	}
	printf("left at %ld\n", gettime(ms));
	work();
}

task jumps()
{
	while (1) {
		critical {
			work();
			goto out;
		}
		fdelay(10, ms);
	}
out:;
}

task returns(int now)
{
	while (1) {
		critical {
			work();
			if (now)
				return;
		}
		fdelay(10, ms);
	}
}

int main(void)
{
	breaks();
	jumps();
	returns(1);
}
