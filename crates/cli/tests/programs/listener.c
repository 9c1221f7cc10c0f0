/* Reads `c` until the run is over. */
#include "common.h"

int main(void)
{
	onbeat *run;
	onbeat_listener *in;
	uint64_t value;

	must(onbeat_open(&run));
	must(onbeat_listener_open(run, "c", sizeof(value), &in));
	must(onbeat_start(run));
	while (onbeat_read(in, &value, NULL) == ONBEAT_OK)
		;
	onbeat_listener_close(in);
	onbeat_close(run);
	return 0;
}
