/* Believes that the messages of `c` have four octets. */
#include "common.h"

int main(void)
{
	onbeat *run;
	onbeat_listener *in;

	must(onbeat_open(&run));
	must(onbeat_listener_open(run, "c", 4, &in));
	return 0;
}
