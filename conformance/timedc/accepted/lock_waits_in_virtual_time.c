/*
 * A task that finds a mutex taken lets virtual time advance, on processors of their own as well,
 * and those that wait get it in the order in which they came.
 * duration: 60ms
 * trace: 0 main start, end
 * trace: 0 a start
 * trace: 3ms a arrive @a
 * trace: 20ms a release @a, end
 * trace: 0 b start
 * trace: 6ms b arrive @b
 * trace: 20ms b release @b, end
 * trace: 0 c start
 * trace: 9ms c arrive @c
 * trace: 20ms c release @c, end
 */
#include <cilktc.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((exectime(3, ms))) static void three(void) { }

static void section(void)
{
	pthread_mutex_lock(&lock);
	three();
	pthread_mutex_unlock(&lock);
}

task a() { section(); sdelay(20, ms); /* @a */ }
task b() { section(); sdelay(20, ms); /* @b */ }
task c() { section(); sdelay(20, ms); /* @c */ }

int main(void)
{
	a(); b(); c();
}
