/* A first-generation program that writes into a descriptor. */
#include <stdio.h>
#include <timedc_args.h>
#include <timedc_avtp.h>
#include <unistd.h>

#include "first_manifest.h"

int main(int argc, char *argv[])
{
	GET_ARGS();
	int fd = NETFIFO_TX_CREATE("mcast17");
	if (fd < 0)
		return 1;
	for (uint64_t i = 1; i <= 50; i++)
		if (write(fd, &i, sizeof(i)) != sizeof(i))
			return 2;
	/* What was written is sent first. */
	CLEANUP();
	return 0;
}
