/* Reads `c` for as long as there is a network. */
#include "common.h"

int main(void)
{
	onbeat *run;
	onbeat_listener *in;
	uint64_t value;

	must(onbeat_open(&run));
	must(onbeat_listener_open(run, "c", 8, &in));
	must(onbeat_start(run));
	while (onbeat_read(in, &value, NULL) == ONBEAT_OK)
		;
	fprintf(stderr, "%s\n", onbeat_last_error());
	return 0;
}
