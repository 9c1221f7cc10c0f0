/*
 * Of several locks and pieces of memory the last to be given back ends the wait; realloc keeps one.
 * duration: 1s
 * trace: 0 main start, end
 * trace: 0 worker start
 * trace: 24ms worker abort @p 14ms
 * trace: 30ms worker release @p 14ms, end
 * output: first
 * output: second
 * output: third
 */
#include <cilktc.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;

__attribute__((exectime(8, ms))) static void work(void) { }

task worker()
{
	char *memory = malloc(10);

	pthread_rwlock_rdlock(&shared);
	pthread_mutex_lock(&lock);
	work();
	work();
	puts("first");
	pthread_mutex_unlock(&lock);
	memory = realloc(memory, 10000);
	puts("second");
	pthread_rwlock_unlock(&shared);
	work();
	puts("third");
	free(memory);
	puts("not reached");
	ftp(30, 10, ms); /* @p */
}

int main(void)
{
	worker();
}
