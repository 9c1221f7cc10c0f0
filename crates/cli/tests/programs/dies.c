/* Dies by a signal in the middle of the run. */
#include "common.h"

int main(void)
{
	onbeat *run;
	onbeat_listener *in;
	uint64_t value;

	must(onbeat_open(&run));
	must(onbeat_listener_open(run, "c", sizeof(value), &in));
	must(onbeat_start(run));
	for (int i = 0; i < 100; i++)
		must(onbeat_read(in, &value, NULL));
	abort();
}
