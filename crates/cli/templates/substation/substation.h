/* What the devices of the substation share: rates and messages. */
#pragma once
#include <onbeat.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* 80 samples in each period of 50 Hz. */
#define SAMPLES_PER_PERIOD 80
#define SAMPLES_PER_SECOND 4000
#define SAMPLE_NS (250 * 1000)

/* Phases A, B, C and neutral. */
#define PHASES 4

/* What a merging unit sends: the values of IEC 61850-9-2 LE's data set PhsMeas1, not in BER. */
struct sample {
	uint16_t count;        /* smpCnt: 0 at each full second */
	uint16_t synchronised; /* smpSynch: 2, to a global clock */
	uint32_t reserved;
	struct {
		int32_t value; /* currents in mA, voltages in 10 mV */
		uint32_t quality;
	} current[PHASES], voltage[PHASES];
};

/* What a relay sends: a state with GOOSE's counters. */
struct event {
	uint32_t state_number;    /* stNum: one more with each change */
	uint32_t sequence_number; /* sqNum: 0 with each change, one more with each repetition */
	int64_t changed_ns;       /* t: when the state changed, by the relay's clock */
	uint32_t trip;
	uint32_t reserved;
};

/* Ends the program with a message when a call failed. */
static inline void must(enum onbeat_status status, const char *what)
{
	if (status != ONBEAT_OK) {
		fprintf(stderr, "%s: %s\n", what, onbeat_last_error());
		exit(EXIT_FAILURE);
	}
}
