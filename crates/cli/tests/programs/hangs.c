/* Computes for ever in the middle of the run, and has a child that would outlive it. */
#include "common.h"
#include <unistd.h>

int main(void)
{
	onbeat *run;
	onbeat_listener *in;
	uint64_t value;

	if (fork() == 0) {
		execlp("sleep", "sleep", "1000", (char *)NULL);
		return 1;
	}
	must(onbeat_open(&run));
	must(onbeat_listener_open(run, "c", sizeof(value), &in));
	must(onbeat_start(run));
	for (int i = 0; i < 100; i++)
		must(onbeat_read(in, &value, NULL));
	for (volatile int i = 0;; i++)
		;
}
