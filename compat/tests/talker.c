/* A program with the macros and the argument parser of the later versions. */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <netchan_args.h>
#include <netchan_standalone.h>

#include "manifest.h"

#define LIMIT 200

static volatile int running;

static void sighandler(int signum)
{
	(void)signum;
	running = 0;
}

int main(int argc, char *argv[])
{
	GET_ARGS();
	NETCHAN_TX(mcast42);
	if (!mcast42_du) {
		fprintf(stderr, "no channel\n");
		return 1;
	}
	chan_dump_state(mcast42_du);
	running = 1;
	signal(SIGINT, sighandler);

	struct sensor s = {0};
	for (; s.seqnr < LIMIT && running; s.seqnr++) {
		s.val = 3 * s.seqnr + 1;
		/* Both idioms for a result. */
		int res = s.seqnr % 2 ? WRITE_WAIT(mcast42, &s) : WRITE(mcast42, &s);
		if (res < 0 || res != mcast42_du->payload_size) {
			fprintf(stderr, "sending failed: %d\n", res);
			return 2;
		}
		wait_for_tx_slot(mcast42_du);
	}
	s.seqnr = -1;
	WRITE_WAIT(mcast42, &s);
	WRITE_WAIT(mcast42, &s);
	CLEANUP();
	return 0;
}
