/* Threads that hand values to each other through words, in either time: two in turns, a thread that
 * a thread makes, one that is never woken, and many that are woken in order. */
#define _GNU_SOURCE
#include "common.h"
#include <time.h>

#define ROUNDS 200
#define CROWD 8

static onbeat *run;
static uint32_t turn, never, gate;
static uint64_t handed, seen;
static int order[CROWD], arrived;

static void await(uint32_t *word, uint32_t value)
{
	uint32_t now;

	while ((now = __atomic_load_n(word, __ATOMIC_ACQUIRE)) != value)
		must(onbeat_wait(run, word, now, INT64_MAX));
}

static void set(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	must(onbeat_wake(run, word));
}

static void *taker(void *argument)
{
	for (uint32_t i = 0; i < ROUNDS; i++) {
		await(&turn, 2 * i + 1);
		seen = seen * 31 + handed;
		set(&turn, 2 * i + 2);
	}
	return argument;
}

static void *parent(void *argument)
{
	onbeat_thread *child;
	void *result;

	must(onbeat_thread_create(run, taker, argument, &child));
	must(onbeat_thread_join(child, &result));
	return result;
}

static void *one_of_many(void *argument)
{
	await(&gate, 1);
	order[__atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED)] = *(int *)argument;
	return argument;
}

static void hand_over(void)
{
	onbeat_thread *thread;
	uint64_t expected = 0;
	void *result;

	must(onbeat_thread_create(run, parent, &handed, &thread));
	for (uint32_t i = 0; i < ROUNDS; i++) {
		handed = 1000 + i;
		expected = expected * 31 + handed;
		set(&turn, 2 * i + 1);
		await(&turn, 2 * i + 2);
	}
	must(onbeat_thread_join(thread, &result));
	EXPECT(result == &handed && seen == expected);
}

static void wait_in_vain(int is_virtual)
{
	int64_t before, after;

	must(onbeat_now(run, &before));
	EXPECT(onbeat_wait(run, &never, 0, before + 3 * PERIOD_NS) == ONBEAT_TIMED_OUT);
	must(onbeat_now(run, &after));
	EXPECT(is_virtual ? after == before + 3 * PERIOD_NS : after >= before + 3 * PERIOD_NS);
	EXPECT(onbeat_wait(run, &never, 0, INT64_MIN) == ONBEAT_TIMED_OUT);
	EXPECT(onbeat_wait(run, &never, 1, INT64_MAX) == ONBEAT_OK);
}

static void crowd(int is_virtual)
{
	onbeat_thread *threads[CROWD];
	int numbers[CROWD];
	int64_t now;

	must(onbeat_now(run, &now));
	for (int i = 0; i < CROWD; i++) {
		numbers[i] = i;
		must(onbeat_thread_create(run, one_of_many, &numbers[i], &threads[i]));
	}
	must(onbeat_sleep_until(run, now + PERIOD_NS, NULL));
	set(&gate, 1);
	for (int i = 0; i < CROWD; i++)
		must(onbeat_thread_join(threads[i], NULL));
	EXPECT(arrived == CROWD);
	for (int i = 0; is_virtual && i < CROWD; i++)
		EXPECT(order[i] == i);
}

static void ask_the_machine(int is_virtual)
{
	int64_t now, at;
	int32_t clock;

	must(onbeat_now(run, &now));
	onbeat_status status = onbeat_machine_time(run, now + PERIOD_NS, &clock, &at);
	if (is_virtual) {
		EXPECT(status == ONBEAT_E_REFUSED);
		return;
	}
	must(status);
	struct timespec until = { .tv_sec = at / 1000000000, .tv_nsec = at % 1000000000 };
	EXPECT(clock_nanosleep(clock, TIMER_ABSTIME, &until, NULL) == 0);
	must(onbeat_now(run, &at));
	EXPECT(at >= now + PERIOD_NS);
	must(onbeat_machine_time(run, INT64_MAX, &clock, &at));
	must(onbeat_machine_time(run, INT64_MIN, &clock, NULL));
}

int main(int count, char **arguments)
{
	int is_virtual = count > 1 && strcmp(arguments[1], "virtual") == 0;
	onbeat_talker *out;

	must(onbeat_open(&run));
	must(onbeat_talker_open(run, "c", 8, &out));
	EXPECT(onbeat_wait(run, &never, 0, 0) == ONBEAT_E_NOT_STARTED);
	must(onbeat_start(run));
	EXPECT(onbeat_wait(run, NULL, 0, 0) == ONBEAT_E_ARGUMENT);
	EXPECT(onbeat_wake(run, NULL) == ONBEAT_E_ARGUMENT);
	EXPECT(onbeat_wait(NULL, &never, 0, 0) == ONBEAT_E_ARGUMENT);
	hand_over();
	wait_in_vain(is_virtual);
	crowd(is_virtual);
	ask_the_machine(is_virtual);
	must(onbeat_write(out, &seen, NULL));
	/* Only the end of the run wakes it. */
	EXPECT(onbeat_wait(run, &never, 0, INT64_MAX) == ONBEAT_STOPPED);
	EXPECT(onbeat_wait(run, &never, 0, INT64_MAX) == ONBEAT_STOPPED);
	onbeat_talker_close(out);
	onbeat_close(run);
	return 0;
}
