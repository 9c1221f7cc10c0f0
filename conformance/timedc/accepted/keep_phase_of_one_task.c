/*
 * timedc_keep_phase keeps the phase of the calling task and of no other.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 keeps start
 * trace: 25ms keeps arrive @k 15ms, release @k 15ms, arrive @k 5ms, release @k 5ms, arrive @k
 * trace: 30ms keeps release @k, end
 * trace: 0 loses start
 * trace: 25ms loses arrive @l 15ms, release @l 15ms, arrive @l
 * trace: 35ms loses release @l, arrive @l
 * trace: 45ms loses release @l, end
 */
#include <cilktc.h>

__attribute__((exectime(25, ms))) static void slow(void)
{
}

task keeps()
{
	timedc_keep_phase(1);
	for (int i = 0; i < 3; i++) {
		if (i == 0)
			slow();
		sdelay(10, ms); /* @k */
	}
}

task loses()
{
	for (int i = 0; i < 3; i++) {
		if (i == 0)
			slow();
		sdelay(10, ms); /* @l */
	}
}

int main(void)
{
	keeps();
	loses();
}
