/*
 * A task that still holds its lock at the point has come there by itself: late, but not aborted.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 15ms worker arrive @p 5ms
 * trace: 20ms worker release @p 5ms, end
 * output: 0 5
 */
#include <cilktc.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((exectime(15, ms))) static void work(void) { }

task worker()
{
	long late;

	pthread_mutex_lock(&lock);
	work();
	late = ftp(20, 10, ms); /* @p */
	printf("%d %ld\n", timedc_aborted(), late);
	pthread_mutex_unlock(&lock);
}

int main(void)
{
	worker();
}
