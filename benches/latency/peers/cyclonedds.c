/*
 * CycloneDDS, best effort. The listener takes each message in the callback, on the library's
 * receiving thread: one wake-up less than a task that waits with a wait set.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "../bench.h"
#include "message.h"

#include <dds/dds.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HISTORY 1000

static dds_entity_t participant, topic;
static dds_qos_t *qos;

static dds_entity_t checked(dds_entity_t entity, const char *what)
{
	if (entity < 0)
		bench_fail(what);
	return entity;
}

static void open_topic(void)
{
	setenv("CYCLONEDDS_URI",
	       "<CycloneDDS><Domain><General><Interfaces><NetworkInterface name=\"" BENCH_INTERFACE
	       "\"/></Interfaces></General></Domain></CycloneDDS>",
	       1);
	qos = dds_create_qos();
	dds_qset_reliability(qos, DDS_RELIABILITY_BEST_EFFORT, 0);
	dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, HISTORY);
	participant = checked(dds_create_participant(DDS_DOMAIN_DEFAULT, NULL, NULL), "participant");
	topic = checked(dds_create_topic(participant, &Message_desc, "latency", NULL, NULL),
			"topic");
}

void bench_talker(const char *variant)
{
	struct bench_message message = { 0 };
	Message sample;
	dds_publication_matched_status_t matched = { 0 };

	(void)variant;
	open_topic();
	dds_entity_t writer = checked(dds_create_writer(participant, topic, qos, NULL), "writer");
	while (!matched.current_count) {
		dds_get_publication_matched_status(writer, &matched);
		usleep(1000);
	}
	while (bench_next(&message)) {
		memcpy(&sample, &message, sizeof sample);
		if (dds_write(writer, &sample) < 0)
			bench_fail("dds_write");
	}
}

static void on_data(dds_entity_t reader, void *unused)
{
	static Message storage;
	void *sample = &storage;
	dds_sample_info_t info;

	(void)unused;
	while (dds_take(reader, &sample, &info, 1, 1) == 1)
		if (info.valid_data)
			bench_arrived((const struct bench_message *)&storage);
}

void bench_listener(const char *variant)
{
	(void)variant;
	open_topic();
	dds_listener_t *listener = dds_create_listener(NULL);
	dds_lset_data_available(listener, on_data);
	checked(dds_create_reader(participant, topic, qos, listener), "reader");
	bench_ready();
	for (;;)
		pause();
}
