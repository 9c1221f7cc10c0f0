/* Timed C for sanitizers: tasks that share channels, locks and memory, that are aborted, ranked
 * again and started while others end. */
#include <cilktc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counted;
int fifochannel(numbers, 256);
int lvchannel(latest);

static void count(void)
{
	pthread_mutex_lock(&lock);
	counted++;
	pthread_mutex_unlock(&lock);
}

task producer(void)
{
	int value = 0;

	spolicy(FIFO_RM);
	for (int i = 0; i < 200; i++) {
		value++;
		cwrite(numbers, value);
		cwrite(latest, value);
		count();
		sdelay(2, ms);
	}
}

task consumer(void)
{
	int value, sum = 0;

	for (int i = 0; i < 200; i++) {
		cread(numbers, value);
		sum += value;
	}
	printf("sum %d\n", sum);
}

task sampler(void)
{
	int value, last = 0;

	for (int i = 0; i < 50; i++) {
		spriority(1 + i % 20);
		cread(latest, value);
		if (value < last)
			printf("%d after %d\n", value, last);
		last = value;
		sdelay(5, ms);
	}
}

task aborted(void)
{
	int rounds = 0;

	for (int i = 0; i < 50; i++) {
		volatile int go = 1;

		while (go) {
			char text[32], *memory = malloc(100);

			memory[0] = (char)i;
			count();
			snprintf(text, sizeof(text), "%d", i);
			free(memory);
		}
		rounds += ftp(8, 6, ms) >= 0;
	}
	printf("rounds %d\n", rounds);
}

task brief(void)
{
	count();
	sdelay(1, ms);
}

task starter(void)
{
	brief();
	sdelay(30, ms);
	brief();
	sdelay(60, ms);
	brief();
}

int main(void)
{
	producer();
	consumer();
	sampler();
	aborted();
	starter();
	return 0;
}
