/*
 * Bare AF_PACKET: one blocking call per message. The measure of all others. With a variant, a
 * margin in microseconds, the listener sleeps until that long before a message is due, then spins.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "../frame.h"

#include <errno.h>
#include <stdlib.h>

void bench_talker(const char *variant)
{
	struct frame frame = frame_template;
	struct bench_message message = { 0 };
	int fd = frame_socket(false);

	(void)variant;
	while (bench_next(&message)) {
		frame.message = message;
		if (send(fd, &frame, sizeof frame, 0) < 0 && errno != ENOBUFS)
			bench_fail("send");
	}
}

/* Spins for twice the margin, then blocks: a message that does not come costs no more. */
static ssize_t receive_near(int fd, struct received *frame, int64_t due_ns, int64_t margin_ns)
{
	bench_sleep_until(due_ns - margin_ns);
	do {
		ssize_t size = recv(fd, frame, sizeof *frame, MSG_DONTWAIT);
		if (size >= 0)
			return size;
	} while (bench_now() < due_ns + margin_ns);
	return recv(fd, frame, sizeof *frame, 0);
}

void bench_listener(const char *variant)
{
	struct received frame;
	struct bench_message message = { 0 };
	/* Flat out, nothing is due at a known instant. */
	int64_t margin_ns = bench_period() ? atol(variant) * 1000 : 0;
	int fd = frame_socket(true);

	bench_ready();
	for (;;) {
		int64_t due_ns = message.sent_ns + bench_period();
		ssize_t size = margin_ns && message.sent_ns ?
				       receive_near(fd, &frame, due_ns, margin_ns) :
				       recv(fd, &frame, sizeof frame, 0);
		if (size == sizeof frame) {
			message = frame.message;
			bench_arrived(&message);
		}
	}
}
