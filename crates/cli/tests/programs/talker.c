/* Writes a counter on `c`: each millisecond, or with the argument `wait` each four milliseconds and
 * waiting for its fixed delay. */
#include "common.h"

int main(int count, char **arguments)
{
	int waits = count > 1 && strcmp(arguments[1], "wait") == 0;
	int64_t period_ns = waits ? 4 * PERIOD_NS : PERIOD_NS;
	onbeat *run;
	onbeat_talker *out;

	must(onbeat_open(&run));
	must(onbeat_talker_open(run, "c", 8, &out));
	must(onbeat_start(run));
	for (uint64_t i = 0;; i++) {
		if ((waits ? onbeat_write_wait(out, &i, NULL, NULL) : onbeat_write(out, &i, NULL)) !=
		    ONBEAT_OK)
			break;
		if (onbeat_sleep_until(run, (int64_t)(i + 1) * period_ns, NULL) != ONBEAT_OK)
			break;
	}
	onbeat_talker_close(out);
	onbeat_close(run);
	return 0;
}
