/* Waits for time to pass without letting it. */
#include "common.h"

int main(void)
{
	onbeat *run;
	onbeat_listener *in;
	uint64_t value;

	must(onbeat_open(&run));
	must(onbeat_listener_open(run, "c", sizeof(value), &in));
	must(onbeat_start(run));
	while (onbeat_try_read(in, &value, NULL) == ONBEAT_EMPTY)
		;
	return 0;
}
