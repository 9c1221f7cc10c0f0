/*
 * A task that finds a mutex taken waits, and lets its processor to others. Of those that wait the
 * most urgent gets it. Who holds it is as urgent as they are: what comes in between delays neither.
 * duration: 60ms
 * cores: 1
 * trace: 0 main start, end
 * trace: 0 low start
 * trace: 11ms low arrive @l
 * trace: 50ms low release @l, end
 * trace: 0 middle start, arrive @m
 * trace: 2ms middle release @m
 * trace: 9ms middle arrive @n
 * trace: 42ms middle release @n, end
 * trace: 0 high start, arrive @h
 * trace: 1ms high release @h
 * trace: 6ms high arrive @i
 * trace: 51ms high release @i, end
 * trace: 0 other start, arrive @o
 * trace: 500us other release @o
 * trace: 10ms other arrive @p
 * trace: 50500us other release @p, end
 */
#include <cilktc.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((exectime(1, ms))) static void one(void) { }
__attribute__((exectime(3, ms))) static void three(void) { }
__attribute__((exectime(4, ms))) static void four(void) { }

task low()
{
	spriority(1);
	pthread_mutex_lock(&lock);
	four();
	pthread_mutex_unlock(&lock);
	pthread_mutex_lock(&lock);
	one();
	pthread_mutex_unlock(&lock);
	sdelay(50, ms); /* @l */
}
task other()
{
	spriority(2);
	sdelay(500, us); /* @o */
	pthread_mutex_lock(&lock);
	one();
	pthread_mutex_unlock(&lock);
	sdelay(50, ms); /* @p */
}
task middle()
{
	spriority(3);
	sdelay(2, ms); /* @m */
	three();
	sdelay(40, ms); /* @n */
}
task high()
{
	spriority(4);
	sdelay(1, ms); /* @h */
	pthread_mutex_lock(&lock);
	one();
	pthread_mutex_unlock(&lock);
	one();
	sdelay(50, ms); /* @i */
}

int main(void)
{
	low(); other(); middle(); high();
}
