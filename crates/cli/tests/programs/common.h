/* What the test programs share. SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

#include <onbeat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef PERIOD_NS
#define PERIOD_NS (1000 * 1000)
#endif

static inline void must(onbeat_status status)
{
	if (status != ONBEAT_OK) {
		fprintf(stderr, "status %d: %s\n", (int)status, onbeat_last_error());
		exit(EXIT_FAILURE);
	}
}

static inline void expect(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "does not hold: %s\n", what);
		exit(EXIT_FAILURE);
	}
}

#define EXPECT(what) expect((what), #what)
