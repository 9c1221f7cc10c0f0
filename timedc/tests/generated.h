/*
 * generated.h: the parts of a translated program, by hand. A test puts "timedc.h" to use as the
 * translator does, so these programs need no translator.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include <timedc.h>

#define MS 1000000LL
#define POINT(number, kind, unit) {#number, "", __FILE__, number, TIMEDC_##kind, unit}

/* A task without arguments; `period` and `deadline` as the translator finds them. */
#define TASK(name, period, deadline) \
	static void name##_body(void *arguments) \
	{ \
		(void)arguments; \
		name(); \
	} \
	static const struct timedc_task name##_task = { \
		#name, __FILE__, __LINE__, name##_body, 0, period, deadline, 0}

/* `points` is there. */
#define UNIT(...) \
	static const struct timedc_task main_task = {"main", __FILE__, __LINE__, 0, 0, 0, 0, 0}; \
	static const struct timedc_task *const tasks[] = {&main_task, __VA_ARGS__}; \
	static struct timedc_unit unit = { \
		.tasks = tasks, .task_count = sizeof(tasks) / sizeof(tasks[0]), \
		.points = points, .point_count = sizeof(points) / sizeof(points[0])}; \
	__attribute__((constructor)) static void register_unit(void) \
	{ \
		timedc_register(&unit); \
	}

/* Never returns: computes, in virtual time with a declared time. */
static __attribute__((noinline, unused)) void forever(int depth)
{
	static volatile unsigned count;

	if (depth > 0)
		forever(depth - 1);
	while (depth < 100) {
		count++;
		timedc_work(1000 * MS, 1000 * MS);
	}
}
