/*
 * While a lock is held that was taken in the segment, the abort waits for its release.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 15ms worker abort @p 5ms
 * trace: 20ms worker release @p 5ms, end
 * output: held
 * output: free 0
 */
#include <cilktc.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((exectime(15, ms))) static void work(void) { }

task worker()
{
	pthread_mutex_lock(&lock);
	work();
	puts("held");
	pthread_mutex_unlock(&lock);
	puts("not reached");
	ftp(20, 10, ms); /* @p */
	printf("free %d\n", pthread_mutex_trylock(&lock));
	pthread_mutex_unlock(&lock);
}

int main(void)
{
	worker();
}
