/*
 * Duff's device may be a firm segment.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 copier start
 * trace: 11ms copier arrive @p
 * trace: 20ms copier release @p
 * trace: 39500us copier abort @p
 * trace: 40ms copier release @p, end
 * output: 11
 * output: 30
 */
#include <cilktc.h>

static int copied;

__attribute__((exectime(1, ms))) static void copy(void)
{
	copied++;
}

task copier()
{
	int counts[] = {11, 30};

	for (int i = 0; i < 2; i++) {
		int count = counts[i];
		int n = (count + 7) / 8;

		switch (count % 8) {
		case 0: do { copy();
		case 7:      copy();
		case 6:      copy();
		case 5:      copy();
		case 4:      copy();
		case 3:      copy();
		case 2:      copy();
		case 1:      copy();
			} while (--n > 0);
		}
		ftp(20000, 19500, us); /* @p */
		printf("%d\n", copied);
	}
}

int main(void)
{
	copier();
}
