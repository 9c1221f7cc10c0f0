#include <cilktc.h>
task t0(void)
{
	spriority(51);
	while (1) {
	__attribute__((exectime(231, 943, us)));
	/* It sleeps for its jitter, and wakes late. */
	sdelay(4000, us);
	}
}
int main(void)
{
	t0();
	return 0;
}
