/*
 * talker.c: the program of a sensor. It sends a reading each 10 ms over the channel that its first
 * argument names, as long as its second one says, in milliseconds.
 *
 *   main reactor {
 *     s = new Sensor()
 *     t = new Transmit<reading_t>(channel = "...")
 *     s.reading -> t.in
 *   }
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "models.h"

#include <stdlib.h>
#include <string.h>

static char *channel;
static transmit_t transmit;

static struct {
	self_base_t base;
	trigger_t timer;
	reaction_t reaction;
	value_port_t reading;
	int64_t count;
} sensor;

static void sense(void *argument)
{
	(void)argument;
	value_port_t *reading = &sensor.reading;
	T value;
	memset(&value, 0, sizeof(value));
	memcpy(&value, &sensor.count, sizeof(value) < 8 ? sizeof(value) : 8);
	sensor.count++;
	lf_set(reading, value);
}

void _lf_initialize_trigger_objects(void)
{
	static reaction_t *readers[1];
	transmit_new(&transmit, channel, &sensor.reading);
	readers[0] = &transmit.reaction[2];
	sensor.reading.base.readers = readers;
	sensor.reading.base.reader_count = 1;
	sensor.reaction = (reaction_t){ sense, &sensor, 2, false, NULL };
	sensor.timer = (trigger_t){ .reaction = &sensor.reaction, .is_timer = true,
				    .period = 10000000 };
	stub_trigger(&sensor.timer);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	channel = argv[1];
	return stub_execute(atoll(argv[2]) * 1000000);
}
