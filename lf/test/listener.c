/*
 * listener.c: the program of a logic. It prints each reading of the channel that its first argument
 * names: its number, its tag since the start in nanoseconds and microsteps, and by how much it was
 * late. The second argument is the channel's fixed delay in nanoseconds, the third the duration in
 * milliseconds; with a fourth, `early`, the end is opened before the start.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "models.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char **arguments;
static int argument_count;
static receive_t receive;
static reaction_t logic;

static void print(void *unused)
{
	(void)unused;
	int64_t count = 0;
	memcpy(&count, &receive.out.value, sizeof(T) < 8 ? sizeof(T) : 8);
	tag_t tag = stub_environment()->current_tag;
	int64_t late = receive.late.base.is_present ? receive.late.value : 0;
	printf("%" PRId64 " %" PRId64 " %" PRIu32 " %" PRId64 "\n", count,
	       tag.time - lf_time_start(), tag.microstep, late);
}

void _lf_initialize_trigger_objects(void)
{
	static reaction_t *readers[] = { &logic };
	char *channel = arguments[1];
	if (argument_count > 4)
		channel = onbeat_lf_early(channel, sizeof(T));
	receive_new(&receive, channel, atoll(arguments[2]));
	logic = (reaction_t){ print, NULL, 9, false, NULL };
	receive.out.base.readers = readers;
	receive.out.base.reader_count = 1;
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	argument_count = argc;
	arguments = argv;
	return stub_execute(atoll(argv[3]) * 1000000);
}
