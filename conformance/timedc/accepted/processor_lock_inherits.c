/*
 * Who holds a mutex is as urgent as those that wait for it over another mutex, too, and no longer
 * than it holds it.
 * duration: 60ms
 * cores: 1
 * trace: 0 main start, end
 * trace: 0 low start
 * trace: 12ms low arrive @l
 * trace: 50ms low release @l, end
 * trace: 0 between start, arrive @b
 * trace: 1ms between release @b
 * trace: 11ms between arrive @c
 * trace: 51ms between release @c, end
 * trace: 0 middle start, arrive @m
 * trace: 3ms middle release @m
 * trace: 10ms middle arrive @n
 * trace: 43ms middle release @n, end
 * trace: 0 high start, arrive @h
 * trace: 2ms high release @h
 * trace: 7ms high arrive @i
 * trace: 52ms high release @i, end
 */
#include <cilktc.h>
#include <pthread.h>

static pthread_mutex_t inner = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER;

__attribute__((exectime(1, ms))) static void one(void) { }
__attribute__((exectime(3, ms))) static void three(void) { }
__attribute__((exectime(4, ms))) static void four(void) { }

task low()
{
	spriority(1);
	pthread_mutex_lock(&inner);
	four();
	pthread_mutex_unlock(&inner);
	one();
	sdelay(50, ms); /* @l */
}
task between()
{
	spriority(2);
	sdelay(1, ms); /* @b */
	pthread_mutex_lock(&outer);
	pthread_mutex_lock(&inner);
	one();
	pthread_mutex_unlock(&inner);
	pthread_mutex_unlock(&outer);
	one();
	sdelay(50, ms); /* @c */
}
task middle()
{
	spriority(3);
	sdelay(3, ms); /* @m */
	three();
	sdelay(40, ms); /* @n */
}
task high()
{
	spriority(4);
	sdelay(2, ms); /* @h */
	pthread_mutex_lock(&outer);
	one();
	pthread_mutex_unlock(&outer);
	one();
	sdelay(50, ms); /* @i */
}

int main(void)
{
	low(); between(); middle(); high();
}
