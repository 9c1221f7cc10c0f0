/*
 * A model of the pipe-and-worker design: each side has a worker, with a pipe to the task.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "../frame.h"

#include <pthread.h>
#include <unistd.h>

static int ends[2]; /* of the pipe: read, write */

static void start(void *(*worker)(void *))
{
	pthread_t thread;

	if (pipe(ends) || pthread_create(&thread, NULL, worker, NULL))
		bench_fail("pipe, thread");
}

static void *transmit(void *unused)
{
	struct frame frame = frame_template;
	int fd = frame_socket(false);

	while (read(ends[0], &frame.message, BENCH_SIZE) == BENCH_SIZE)
		send(fd, &frame, sizeof frame, 0);
	return unused;
}

static void *receive(void *unused)
{
	struct received frame;
	int fd = frame_socket(true);

	bench_ready();
	while (recv(fd, &frame, sizeof frame, 0) > 0)
		if (write(ends[1], &frame.message, BENCH_SIZE) < 0)
			bench_fail("write");
	return unused;
}

void bench_talker(const char *variant)
{
	struct bench_message message = { 0 };

	(void)variant;
	start(transmit);
	while (bench_next(&message) && write(ends[1], &message, BENCH_SIZE) > 0)
		;
}

void bench_listener(const char *variant)
{
	struct bench_message message;

	(void)variant;
	start(receive);
	while (read(ends[0], &message, BENCH_SIZE) == BENCH_SIZE)
		bench_arrived(&message);
}
