/*
 * Of several firm tasks at once each is aborted at its own deadlines, and those on time never.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 always start
 * trace: 10ms..90ms/10ms always abort @a, release @a
 * trace: 100ms always abort @a, release @a, end
 * trace: 0 never start
 * trace: 5ms..96ms/7ms never arrive @n
 * trace: 7ms..91ms/7ms never release @n
 * trace: 98ms never release @n, end
 * trace: 0 sometimes start
 * trace: 20ms sometimes abort @s
 * trace: 30ms sometimes release @s
 * trace: 36ms sometimes arrive @s
 * trace: 60ms sometimes release @s
 * trace: 80ms sometimes abort @s
 * trace: 90ms sometimes release @s
 * trace: 96ms sometimes arrive @s
 * trace: 120ms sometimes release @s, end
 * output: never 0
 * output: always 10
 * output: sometimes 2
 */
#include <cilktc.h>

__attribute__((exectime(15, ms))) static void fifteen(void) { }
__attribute__((exectime(5, ms))) static void five(void) { }
__attribute__((exectime(6, ms))) static void six(void) { }

static void outer(void (*inner)(void))
{
	inner();
}

task always()
{
	int aborts = 0;

	for (int i = 0; i < 10; i++) {
		outer(fifteen);
		fdelay(10, ms); /* @a */
		aborts += timedc_aborted();
	}
	printf("always %d\n", aborts);
}

task never()
{
	int aborts = 0;

	for (int i = 0; i < 14; i++) {
		outer(five);
		fdelay(7, ms); /* @n */
		aborts += timedc_aborted();
	}
	printf("never %d\n", aborts);
}

task sometimes()
{
	int aborts = 0;

	for (int i = 0; i < 4; i++) {
		if (i % 2 == 0) {
			outer(fifteen);
			outer(fifteen);
		}
		outer(six);
		ftp(30, 20, ms); /* @s */
		aborts += timedc_aborted();
	}
	printf("sometimes %d\n", aborts);
}

int main(void)
{
	always();
	never();
	sometimes();
}
