/*
 * stress.c: 100,000 aborts in four tasks that allocate, lock, print and open files without end.
 * Then no lock may be taken, no memory and no descriptor lost.
 */
#include <cilktc.h>
#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TASKS 4
#define WARM_UP 200
#define ROUNDS 25000
#define NEVER 1000000000000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static FILE *null;
static int aborted, arrived, let_go;
static volatile unsigned sum;

static void spin(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		sum += i;
}

static void allocate(unsigned size)
{
	char *text = malloc(size);
	spin(size % 32);
	text = realloc(text, 2 * size);
	char *copy = strdup("a text that is longer than nothing");
	fprintf(null, "%s %u\n", copy, size);
	free(copy);
	free(text);
}

static void lock(unsigned size)
{
	pthread_mutex_lock(&mutex);
	spin(size % 16);
	pthread_mutex_unlock(&mutex);
	pthread_rwlock_rdlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
	pthread_rwlock_wrlock(&rwlock);
	spin(size % 16);
	pthread_rwlock_unlock(&rwlock);
	flockfile(null);
	fputs("two", null);
	fputc('\n', null);
	funlockfile(null);
}

static void open_file(void)
{
	char line[16];
	struct tm date;
	time_t at = 0;
	FILE *file = fopen("/dev/null", "r");

	if (file) {
		if (fgets(line, sizeof(line), file))
			sum++;
		fclose(file);
	}
	localtime_r(&at, &date);
	sum += (unsigned)rand();
}

static void unlock(void *argument)
{
	pthread_mutex_unlock(argument);
}

/* Holds a lock and memory for ever, and says what to do then. */
static void hold(unsigned size)
{
	char *text = malloc(size);
	timedc_on_abort(free, text);
	pthread_mutex_lock(&mutex);
	timedc_on_abort(unlock, &mutex);
	for (;;)
		spin(size);
}

static void run_rounds(int rounds)
{
	for (int round = 0; round < rounds; round++) {
		long delay = 30;

		for (unsigned i = 1 + (unsigned)round % 64; i > 0; i++) {
			allocate(i % 1024 + 1);
			lock(i);
			if (i % 8 == 0)
				open_file();
			if (round % 16 == 0)
				hold(i);
		}
		fdelay(delay, us);
		delay = NEVER; /* the counting must not be late */
		__atomic_add_fetch(&aborted, timedc_aborted(), __ATOMIC_RELAXED);
	}
}

/* Says that it has come here, and waits for the word to continue. */
static void meet(int number)
{
	__atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&let_go, __ATOMIC_SEQ_CST) < number)
		sdelay(1, ms);
}

task stress()
{
	/* The first time, what is kept for ever is allocated. */
	run_rounds(WARM_UP);
	meet(1);
	sdelay(0, ms);
	run_rounds(ROUNDS);
	meet(2);
}

static int descriptors(void)
{
	int count = 0;
	DIR *directory = opendir("/proc/self/fd");

	while (directory && readdir(directory))
		count++;
	closedir(directory);
	return count;
}

/* Until all tasks have met; nothing is allocated then. */
static size_t memory_when_met(int number)
{
	while (__atomic_load_n(&arrived, __ATOMIC_SEQ_CST) < TASKS * number)
		usleep(1000);
	return mallinfo2().uordblks;
}

int main(void)
{
	alarm(55);
	null = fopen("/dev/null", "w");
	stress();
	stress();
	stress();
	stress();
	size_t before = memory_when_met(1);
	int open_before = descriptors();

	aborted = 0;
	let_go = 1;
	size_t after = memory_when_met(2);
	int locks = pthread_mutex_trylock(&mutex) || pthread_rwlock_trywrlock(&rwlock) ||
		    ftrylockfile(null);
	fprintf(stderr, "%d aborted, locks %d, descriptors %+d, memory %+zd\n", aborted, locks,
		descriptors() - open_before, (ssize_t)(after - before));
	let_go = 2;
	return 0;
}
