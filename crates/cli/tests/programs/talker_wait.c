/* Writes a counter on `c` each four milliseconds and waits for its fixed delay. */
#include "common.h"

int main(void)
{
	onbeat *run;
	onbeat_talker *out;

	must(onbeat_open(&run));
	must(onbeat_talker_open(run, "c", 8, &out));
	must(onbeat_start(run));
	for (uint64_t i = 0; onbeat_write_wait(out, &i, NULL) == ONBEAT_OK; i++)
		if (onbeat_sleep_until(run, (int64_t)(i + 1) * 4 * PERIOD_NS, NULL) != ONBEAT_OK)
			break;
	onbeat_talker_close(out);
	onbeat_close(run);
	return 0;
}
