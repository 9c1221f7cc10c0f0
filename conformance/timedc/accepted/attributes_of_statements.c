/*
 * Statements may have attributes, as in C23 or GNU C: with points around them, too.
 * cc: -std=c2x
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 f start
 * trace: 0 f arrive @one
 * trace: 5ms f release @one
 * trace: 5ms f arrive @two
 * trace: 6ms f release @two
 * trace: 6ms f arrive @one
 * trace: 11ms f release @one, end
 * output: 30
 */
#include <stdio.h>
#include <cilktc.h>

task f()
{
	int x = 0;

	for (int n = 0; n < 3; n++) {
		switch (n) {
		case 0:
			x += 1;
			[[fallthrough]];
		case 1:
			x += 10;
			__attribute__((fallthrough));
		default:
			x += 1;
			if (n == 2)
				break;
		[[maybe_unused]] there:
			x += 3;
		}
		[[maybe_unused]] int y = 0;
		__attribute__((unused)) int z = 1;
		if (n == 1)
			sdelay(1, ms); /* @two */
		else
			fdelay(5, ms); /* @one */
	}
	printf("%d\n", x);
}

int main(void)
{
	f();
}
