/*
 * A lock that was taken before the segment does not delay its abort.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start, arrive @a
 * trace: 10ms worker release @a
 * trace: 20ms worker abort @b, release @b, end
 */
#include <cilktc.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((exectime(15, ms))) static void work(void) { }

task worker()
{
	pthread_mutex_lock(&lock);
	fdelay(10, ms); /* @a */
	work();
	fdelay(10, ms); /* @b */
	pthread_mutex_unlock(&lock);
}

int main(void)
{
	worker();
}
