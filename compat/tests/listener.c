/* Reads what talker.c sends: no message twice, none torn. */
#include <signal.h>
#include <unistd.h>

#include <netchan_args.h>
#include <netchan_standalone.h>

#include "manifest.h"

static volatile int running;

static void sighandler(int signum)
{
	(void)signum;
	running = 0;
}

int main(int argc, char *argv[])
{
	GET_ARGS();
	NETCHAN_RX(mcast42);
	if (!mcast42_du) {
		fprintf(stderr, "no channel\n");
		return 1;
	}
	running = 1;
	signal(SIGINT, sighandler);
	printf("ready\n");
	fflush(stdout);

	struct sensor s = {0};
	unsigned long received = 0;
	uint64_t last = 0;
	while (running) {
		int res = received % 2 ? READ(mcast42, &s) : READ_WAIT(mcast42, &s);
		if (res != (int)sizeof(s)) {
			fprintf(stderr, "reading failed: %d\n", res);
			return 2;
		}
		if (s.seqnr == (uint64_t)-1)
			break;
		if (s.val != 3 * s.seqnr + 1 || (received && s.seqnr <= last)) {
			fprintf(stderr, "torn or twice: %lu after %lu\n", (unsigned long)s.seqnr,
				(unsigned long)last);
			return 3;
		}
		last = s.seqnr;
		received++;
	}
	printf("received %lu\n", received);
	CLEANUP();
	return 0;
}
