/* Reads one of load_talker.c's channels; the other is open and never read. */
#include <netchan_args.h>
#include <netchan_standalone.h>

#include "manifest.h"

int main(int argc, char *argv[])
{
	GET_ARGS();
	NETCHAN_RX(unread);
	NETCHAN_RX(load);
	if (!unread_du || !load_du)
		return 1;
	printf("ready\n");
	fflush(stdout);
	unsigned char message[LOAD_SIZE];
	unsigned long received = 0, torn = 0;
	while (READ(load, message) == LOAD_SIZE && message[0] != 255) {
		received++;
		torn += memcmp(message, message + 1, LOAD_SIZE - 1) != 0;
	}
	printf("received %lu torn %lu\n", received, torn);
	/* The first ones of the other wait still. */
	if (READ(unread, message) != LOAD_SIZE ||
	    memcmp(message, message + 1, LOAD_SIZE - 1) != 0)
		return 2;
	CLEANUP();
	return 0;
}
