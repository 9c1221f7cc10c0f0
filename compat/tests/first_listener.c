/* The listener of Austad et al. 2023, listing 12, without its tasks: it looks at no result. */
#include <stdio.h>
#include <timedc_avtp.h>

#include "first_manifest.h"

static void reader(void)
{
	NETFIFO_RX(mcast42);
	printf("ready\n");
	fflush(stdout);
	uint64_t d = -1, received = 0, sum = 0;
	while (1) {
		READ_WAIT(mcast42, &d);
		if (d == (uint64_t)-1)
			break;
		received++;
		sum += d;
	}
	printf("received %lu sum %lu\n", (unsigned long)received, (unsigned long)sum);
	CLEANUP();
}

int main(void)
{
	nf_set_nic(NIC);
#ifdef SRP
	nf_use_srp();
#endif
	nf_set_logfile("first_listener.csv");
	nf_log_delay();
	reader();
	return 0;
}
