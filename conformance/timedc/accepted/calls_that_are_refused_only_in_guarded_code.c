/*
 * Calls that may not be aborted are fine in critical blocks and where no firm point can follow.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start, arrive @p
 * trace: 10ms worker release @p, end
 * output: jumped 1
 * output: 7
 */
#include <cilktc.h>
#include <alloca.h>
#include <setjmp.h>

static jmp_buf there;

static void *other(void *argument)
{
	return argument;
}

task worker()
{
	pthread_t thread;

	critical {
		if (pthread_create(&thread, NULL, other, NULL) == 0)
			pthread_join(thread, NULL);
	}
	fdelay(10, ms); /* @p */
	if (setjmp(there) == 0)
		longjmp(there, 1);
	puts("jumped 1");
	int *seven = alloca(sizeof *seven);
	*seven = 7;
	printf("%d\n", *seven);
}

int main(void)
{
	worker();
}
