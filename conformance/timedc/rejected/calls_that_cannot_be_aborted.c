/*
 * In guarded code, calls that would leave the process in disorder are refused.
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

	fork(); /* error: OB4015 */
	pthread_create(&thread, NULL, other, NULL); /* error: OB4015 */
	if (setjmp(there)) /* error: OB4015 */
		longjmp(there, 1); /* error: OB4015 */
	(void)alloca(10); /* error: OB4015 */
	fdelay(10, ms);
	fork();
}

int main(void)
{
	worker();
}
