/* What the programs of the loop share: the period and the messages. */
#pragma once
#include <onbeat.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define PERIOD_NS (1000 * 1000)

/* The sensor's sample of channel `speed`. */
struct speed {
	int64_t sample;
	int64_t mrad_s;
};

/* The answer in channel `torque`, and what the actuator made of it in channel `shaft`. */
struct torque {
	int64_t sample; /* which one this answers */
	int64_t mnm;
};

/* Ends the program with a message when a call failed. */
static inline void must(enum onbeat_status status, const char *what)
{
	if (status != ONBEAT_OK) {
		fprintf(stderr, "%s: %s\n", what, onbeat_last_error());
		exit(EXIT_FAILURE);
	}
}
