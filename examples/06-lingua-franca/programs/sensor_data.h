/* What the sensor sends. SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once
#include <stdint.h>

struct sensor_data {
	uint64_t number;
	/* When it was measured, by the sensor's host's clock. */
	int64_t captured_ns;
};
