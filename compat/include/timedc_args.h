/*
 * timedc_args.h: the command line of first-generation programs: the same options.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include <netchan_args.h>
