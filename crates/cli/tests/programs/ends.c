/* Threads that end as POSIX lets them: by pthread_exit, cancelled; and one that the system does not
 * make. The run expects none of them any longer: its time continues. */
#define _DEFAULT_SOURCE
#include "common.h"
#include <pthread.h>
#include <sys/resource.h>

static onbeat *run;
static pthread_t cancelled;
static int given, cleared;
/* Whether the thread that is to be cancelled is there. */
static _Atomic int began;

static void clear(void *argument)
{
	*(int *)argument = 1;
}

static void *leaves(void *argument)
{
	int64_t now;

	must(onbeat_now(run, &now));
	pthread_cleanup_push(clear, &cleared);
	onbeat_sleep_until(run, now + PERIOD_NS, NULL);
	pthread_exit(argument);
	pthread_cleanup_pop(0);
}

static void *waits(void *argument)
{
	int64_t now;

	cancelled = pthread_self();
	began = 1;
	must(onbeat_now(run, &now));
	for (;;) {
		now += PERIOD_NS;
		onbeat_sleep_until(run, now, NULL);
		pthread_testcancel();
	}
	return argument;
}

/* Whoever asks for its end closes all the same: that is no cancellation point. */
static void *closes(void *argument)
{
	EXPECT(pthread_cancel(pthread_self()) == 0);
	onbeat_talker_close(argument);
	cleared = 1;
	pthread_testcancel();
	return NULL;
}

/* No more memory than there is now: no stack for another thread. */
static void create_without_memory(void)
{
	struct rlimit before, none;
	onbeat_thread *thread = NULL;
	unsigned long pages;
	FILE *file = fopen("/proc/self/statm", "r");

	EXPECT(file && fscanf(file, "%lu", &pages) == 1);
	fclose(file);
	EXPECT(getrlimit(RLIMIT_AS, &before) == 0);
	none = before;
	none.rlim_cur = pages * 4096 + (1 << 20);
	EXPECT(setrlimit(RLIMIT_AS, &none) == 0);
	for (int i = 0; i < 3; i++) {
		EXPECT(onbeat_thread_create(run, leaves, &given, &thread) == ONBEAT_E_SYSTEM);
		EXPECT(strstr(onbeat_last_error(), "pthread_create") != NULL);
		EXPECT(thread == NULL);
	}
	EXPECT(setrlimit(RLIMIT_AS, &before) == 0);
}

int main(void)
{
	onbeat_talker *out;
	onbeat_thread *thread;
	uint64_t value = 0;
	int64_t now;
	void *result;

	must(onbeat_open(&run));
	must(onbeat_talker_open(run, "c", 8, &out));
	must(onbeat_start(run));
	create_without_memory();
	for (; value < 50; value++) {
		must(onbeat_write(out, &value, &now));
		cleared = 0;
		must(onbeat_thread_create(run, leaves, &given, &thread));
		must(onbeat_thread_join(thread, &result));
		EXPECT(result == &given && cleared);
		began = 0;
		must(onbeat_thread_create(run, waits, NULL, &thread));
		/* On a busy machine it may take a while until there is one to cancel. */
		do {
			must(onbeat_now(run, &now));
			must(onbeat_sleep_until(run, now + 2 * PERIOD_NS, NULL));
		} while (!began);
		EXPECT(pthread_cancel(cancelled) == 0);
		must(onbeat_thread_join(thread, &result));
		EXPECT(result == PTHREAD_CANCELED);
	}
	cleared = 0;
	must(onbeat_thread_create(run, closes, out, &thread));
	must(onbeat_thread_join(thread, &result));
	EXPECT(result == PTHREAD_CANCELED && cleared);
	onbeat_close(run);
	return 0;
}
