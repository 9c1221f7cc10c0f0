/* What the run time of Timed C needs of the library, in threads of one program as its tasks are:
 * ends that are found again, waits that end at a limit, a CLEANUP() that is of one task only.
 * Called with "talk" or "listen", and with "exact" in virtual time. */
#include <netchan_standalone.h>

#include "../src/timedc_hooks.h"
#include "manifest.h"

#define CHECK(x) \
	do { \
		if (!(x)) { \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #x); \
			exit(1); \
		} \
	} while (0)

#define D_NS ((int64_t)SC_CLASS_A)
/* Long before the listener reads, and long after. */
#define SENT_NS (20 * NS_IN_MS)
#define AGAIN_NS (200 * NS_IN_MS)

static bool exact;
static __thread int64_t limit = INT64_MAX;

int64_t timedc_wait_limit(void)
{
	return limit;
}

static int64_t now(void)
{
	return (int64_t)tai_get_ns();
}

static void sleep_until(onbeat *run, int64_t at)
{
	CHECK(onbeat_sleep_until(run, at, NULL) == ONBEAT_OK);
}

/* In real time it has passed already, so that no delay of the machine's makes a difference. */
static void limit_in(int64_t ns)
{
	limit = exact ? now() + ns : 0;
}

/* The limit has come, in virtual time to the nanosecond, and no lock is held. */
static void check_timed_out(int result)
{
	CHECK(result == -ETIMEDOUT);
	CHECK(exact ? now() == limit : now() >= limit);
}

static void *first_reader(void *argument)
{
	struct channel *shared = ((struct channel **)argument)[0];
	struct sensor got = {0};
	uint64_t other;

	NETCHAN_RX(mcast42);
	NETCHAN_RX(mcast17);
	CHECK(mcast42_du == shared && mcast17_du);
	/* A channel without a writer. */
	limit = now() + 3 * NS_IN_MS + 1;
	check_timed_out(READ(mcast17, &other));
	limit = now() + 3 * NS_IN_MS + 1;
	check_timed_out(READ_WAIT(mcast17, &other));
	/* As late as it is, a call with a limit that has passed does not wait. */
	CHECK(READ(mcast17, &other) == -ETIMEDOUT);
	limit = INT64_MAX;
	CHECK(READ(mcast42, &got) == sizeof(got) && got.val == 42);
	/* The second is taken; its wait for capture + D ends at the limit. */
	sleep_until(nc_timedc_context(), SENT_NS + 5 * NS_IN_MS + D_NS / 2);
	limit_in(D_NS / 4);
	check_timed_out(READ_WAIT(mcast42, &got));
	limit = INT64_MAX;
	CLEANUP();
	return argument;
}

static void *second_reader(void *argument)
{
	struct sensor got = {0};

	NETCHAN_RX(mcast42);
	CHECK(mcast42_du == ((struct channel **)argument)[0]);
	sleep_until(nc_timedc_context(), SENT_NS + 50 * NS_IN_MS);
	do
		CHECK(READ_WAIT(mcast42, &got) == sizeof(got));
	while (got.val != 44);
	return argument;
}

static void listener(onbeat *run)
{
	NETCHAN_RX(mcast42);
	NETCHAN_RX(mcast17);
	CHECK(mcast42_du && mcast17_du && mcast17_du != mcast42_du);
	CHECK(nc_timedc_begin());

	struct channel *ends[] = {mcast42_du};
	onbeat_thread *threads[2];
	CHECK(onbeat_thread_create(run, first_reader, ends, &threads[0]) == ONBEAT_OK);
	CHECK(onbeat_thread_create(run, second_reader, ends, &threads[1]) == ONBEAT_OK);
	for (int i = 0; i < 2; i++)
		CHECK(onbeat_thread_join(threads[i], NULL) == ONBEAT_OK);
}

static void *talker(void *argument)
{
	struct sensor value = {.val = 42};

	NETCHAN_TX(mcast42);
	CHECK(mcast42_du == argument);
	sleep_until(nc_timedc_context(), SENT_NS);
	limit_in(D_NS / 2);
	/* It is sent; then the rate allows none for a while. */
	check_timed_out(WRITE_WAIT(mcast42, &value));
	limit_in(1);
	check_timed_out(wait_for_tx_slot(mcast42_du));
	limit_in(1);
	uint64_t later = (uint64_t)(now() + 10 * NS_IN_MS);
	if (exact) {
		check_timed_out(WRITE(mcast42, &value));
		limit_in(1);
		check_timed_out(chan_send(mcast42_du, &later));
		limit_in(1);
	}
	CHECK(chan_delay(mcast42_du, later) == INT64_MIN && now() >= limit);
	struct periodic_timer *timer = pt_init(0, NS_IN_SEC, CLOCK_TAI);
	CHECK(timer);
	limit_in(1);
	check_timed_out(pt_next_cycle(timer));
	free(timer);
	limit = INT64_MAX;
	value.val = 43;
	CHECK(WRITE(mcast42, &value) == sizeof(value));
	sleep_until(nc_timedc_context(), AGAIN_NS);
	value.val = 44;
	CHECK(WRITE_WAIT(mcast42, &value) == sizeof(value));
	CLEANUP();
	return argument;
}

static void talk(onbeat *run)
{
	NETCHAN_TX(mcast42);
	CHECK(mcast42_du);
	CHECK(nc_timedc_begin());

	onbeat_thread *thread;
	CHECK(onbeat_thread_create(run, talker, mcast42_du, &thread) == ONBEAT_OK);
	CHECK(onbeat_thread_join(thread, NULL) == ONBEAT_OK);
}

int main(int count, char **arguments)
{
	CHECK(count > 1);
	exact = count > 2 && strcmp(arguments[2], "exact") == 0;
	nc_set_logfile(strcmp(arguments[1], "talk") == 0 ? "tasks_talk.csv" : "tasks_listen.csv");
	onbeat *run = nc_timedc_context();
	CHECK(run && run == nc_timedc_context());
	if (strcmp(arguments[1], "talk") == 0)
		talk(run);
	else
		listener(run);
	return 0;
}
