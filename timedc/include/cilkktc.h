/*
 * cilkktc.h: cilktc.h, as the listings of Austad et al. 2023 spell it.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include <cilktc.h>
