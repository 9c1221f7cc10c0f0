/* Sends two channels of large messages as fast as their rate allows. */
#include <netchan_args.h>
#include <netchan_standalone.h>

#include "manifest.h"

#define MESSAGES 5000

int main(int argc, char *argv[])
{
	GET_ARGS();
	NETCHAN_TX(unread);
	NETCHAN_TX(load);
	if (!unread_du || !load_du)
		return 1;
	unsigned char message[LOAD_SIZE];
	for (int i = 0; i < MESSAGES; i++) {
		memset(message, i % 251, sizeof(message));
		if (WRITE(unread, message) < 0 || WRITE(load, message) < 0)
			return 2;
	}
	memset(message, 255, sizeof(message));
	for (int i = 0; i < 100; i++)
		if (WRITE_WAIT(load, message) < 0)
			return 3;
	CLEANUP();
	return 0;
}
