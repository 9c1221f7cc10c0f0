/* Opens an end of channel `c`, the one that its argument names, and says why not.
 * SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <onbeat.h>
#include <stdio.h>
#include <string.h>

static int told(onbeat_status status)
{
	if (status != ONBEAT_OK)
		fprintf(stderr, "%s\n", onbeat_last_error());
	return status != ONBEAT_OK;
}

int main(int argc, char **argv)
{
	onbeat *context;
	onbeat_talker *talker;
	onbeat_listener *listener;

	if (argc < 2 || told(onbeat_open(&context)))
		return 1;
	if (strcmp(argv[1], "talker") == 0)
		return told(onbeat_talker_open(context, "c", 8, &talker));
	return told(onbeat_listener_open(context, "c", 8, &listener));
}
