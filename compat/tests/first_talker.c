/* The talker of Austad et al. 2023, listing 11, without its tasks: a first-generation program. */
#include <signal.h>
#include <stdio.h>
#include <timedc_avtp.h>

#include "first_manifest.h"

static volatile bool running;

static void stop(int signum)
{
	(void)signum;
	running = false;
}

static void writer(void)
{
	NETFIFO_TX(mcast42);
	for (uint64_t i = 0; i < LOOPS && running; i++) {
		WRITE_WAIT(mcast42, &i);
		if (i % 100 == 0)
			printf("%lu written\n", (unsigned long)i);
	}
	uint64_t end = -1;
	WRITE_WAIT(mcast42, &end);
	CLEANUP();
}

int main(void)
{
	nf_set_nic(NIC);
#ifdef SRP
	nf_use_srp();
#endif
	nf_set_logfile("first_talker.csv");
	nf_log_delay();
	running = true;
	signal(SIGINT, stop);
	writer();
	return 0;
}
