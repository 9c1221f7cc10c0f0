/*
 * ZeroMQ, PUB/SUB over TCP.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "../bench.h"

#include <zmq.h>

void bench_talker(const char *variant)
{
	struct bench_message message = { 0 };
	char subscription[2];
	void *context = zmq_ctx_new();
	/* XPUB is PUB that tells of subscriptions: so nothing is sent before somebody hears it. */
	void *publisher = zmq_socket(context, ZMQ_XPUB);

	(void)variant;
	if (!publisher || zmq_connect(publisher, "tcp://" BENCH_LISTENER ":7780") ||
	    zmq_recv(publisher, subscription, sizeof subscription, 0) < 0)
		bench_fail("ZeroMQ");
	while (bench_next(&message))
		if (zmq_send(publisher, &message, sizeof message, 0) < 0)
			bench_fail("zmq_send");
	zmq_close(publisher);
}

void bench_listener(const char *variant)
{
	struct bench_message message;
	void *context = zmq_ctx_new();
	void *subscriber = zmq_socket(context, ZMQ_SUB);

	(void)variant;
	if (!subscriber || zmq_setsockopt(subscriber, ZMQ_SUBSCRIBE, "", 0) ||
	    zmq_bind(subscriber, "tcp://" BENCH_LISTENER ":7780"))
		bench_fail("ZeroMQ");
	bench_ready();
	while (zmq_recv(subscriber, &message, sizeof message, 0) == sizeof message)
		bench_arrived(&message);
	bench_fail("zmq_recv");
}
