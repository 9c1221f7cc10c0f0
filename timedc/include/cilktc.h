/*
 * cilktc.h: what Timed C programs include. The constructs themselves are the translator's; this
 * brings in what programs rely on it to bring in.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
