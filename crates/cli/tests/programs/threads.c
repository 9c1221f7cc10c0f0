/* Three threads share a counter without a lock: in virtual time one executes at a time, so what
 * they do with it is the same in every run. Then checks joins, timeouts and refusals. */
#include "common.h"

static onbeat *run;
static onbeat_talker *out;
static uint64_t shared;

static void *worker(void *argument)
{
	int64_t number = *(int64_t *)argument, now;

	for (int64_t i = 1; i <= 50; i++) {
		if (onbeat_sleep_until(run, i * PERIOD_NS + number, NULL) != ONBEAT_OK)
			break;
		must(onbeat_now(run, &now));
		shared = shared * 31 + (uint64_t)(now + number);
	}
	return argument;
}

int main(void)
{
	int64_t numbers[3] = { 0, 0, 1 }, before, after;
	onbeat_thread *threads[3];
	uint64_t value;

	EXPECT(onbeat_open(NULL) == ONBEAT_E_ARGUMENT);
	must(onbeat_open(&run));
	EXPECT(onbeat_talker_open(run, "nobody", 8, &out) == ONBEAT_E_REFUSED);
	EXPECT(strstr(onbeat_last_error(), "`nobody`") != NULL);
	must(onbeat_talker_open(run, "c", 8, &out));
	EXPECT(onbeat_talker_open(run, "c", 8, &out) == ONBEAT_E_REFUSED);
	EXPECT(onbeat_now(run, &before) == ONBEAT_E_NOT_STARTED);
	must(onbeat_start(run));
	EXPECT(onbeat_write(out, NULL, NULL) == ONBEAT_E_ARGUMENT);
	for (int i = 0; i < 3; i++)
		must(onbeat_thread_create(run, worker, &numbers[i], &threads[i]));
	for (int i = 0; i < 3; i++) {
		void *result;

		must(onbeat_thread_join(threads[i], &result));
		EXPECT(result == &numbers[i]);
	}
	must(onbeat_now(run, &before));
	EXPECT(before >= 50 * PERIOD_NS);
	must(onbeat_work(run, 12345));
	must(onbeat_now(run, &after));
	EXPECT(after - before == 12345);

	/* What the threads made of the counter goes into the records' times and so into the hash. */
	value = shared;
	must(onbeat_sleep_until(run, after + (int64_t)(value % PERIOD_NS), NULL));
	must(onbeat_write(out, &value, NULL));
	EXPECT(onbeat_try_write(out, &value, &after) == ONBEAT_RATE_EXCEEDED);
	must(onbeat_write(out, &value, NULL));

	/* When the run is over there is no thread, and that is no failure. */
	EXPECT(onbeat_sleep_until(run, INT64_MAX, NULL) == ONBEAT_STOPPED);
	EXPECT(onbeat_thread_create(run, worker, &numbers[0], &threads[0]) == ONBEAT_STOPPED);
	EXPECT(threads[0] == NULL);
	onbeat_talker_close(out);
	onbeat_close(run);
	return 0;
}
