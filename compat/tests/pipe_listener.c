/* A first-generation program that reads from a descriptor. */
#include <stdio.h>
#include <timedc_args.h>
#include <timedc_avtp.h>
#include <unistd.h>

#include "first_manifest.h"

int main(int argc, char *argv[])
{
	GET_ARGS();
	int fd = NETFIFO_RX_CREATE("mcast17");
	if (fd < 0 || NETFIFO_RX_CREATE("missing") != -1)
		return 1;
	printf("ready\n");
	fflush(stdout);
	uint64_t value = 0, sum = 0;
	while (value != 50 && read(fd, &value, sizeof(value)) == sizeof(value))
		sum += value;
	printf("sum %lu\n", (unsigned long)sum);
	CLEANUP();
	/* Its end is seen. */
	return read(fd, &value, sizeof(value)) == 0 ? 0 : 2;
}
