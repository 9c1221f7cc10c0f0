/*
 * federation.c: both federates of a decentralised federation, as lfc lays them out:
 *
 *   federated reactor {
 *     s = new Sensor()             // each 10 ms: `reading` but each fourth time, and `status`
 *     @maxwait(forever)
 *     l = new Logic()
 *     s.reading -> l.reading after 2 ms     // on a channel
 *     s.status -> l.status after 2 ms       // on the socket
 *     s.alarm ~> l.alarm                    // physical, on the socket; one octet
 *   }
 *
 * Arguments: the federate's number, the milliseconds, and with a third one of:
 *   PORT_FILE        sockets between the federates; the second one writes its port there
 *   octets:FILE      what the first one sends over its socket goes into the file; the second one's
 *                    socket gets the octets of the file at the instants at which they were sent
 *   long             the first one sends payloads that are too long
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "stub/reactor_c.h"

#include "../src/internal.h"

#include <arpa/inet.h>
#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READING, STATUS, ALARM, PORTS };

static const char *const names[] = { "reading", "status", "alarm" };
static const char *other;
static int64_t count;

/* --- the sensor ------------------------------------------------------------------------------- */

static struct {
	trigger_t timer;
	reaction_t reaction;
} sensor;

static void sense(void *unused)
{
	(void)unused;
	environment_t *env = stub_environment();
	int64_t value = count++;
	unsigned char octets[64] = { 0 }, status = (unsigned char)value;
	size_t length = strcmp(other, "long") == 0 ? sizeof(octets) : 8 + (size_t)(value % 3);
	memcpy(octets, &value, 8);
	if (value % 4 != 3)
		lf_send_tagged_message(env, 2000000, MSG_TYPE_P2P_TAGGED_MESSAGE, READING, 1,
				       "federate 1", length, octets);
	/* Right behind a message, which it must not overtake; and where there is none. */
	lf_send_port_absent_to_federate(env, value % 4 != 3 ? 2000001 : 2000000, READING, 1);
	lf_send_tagged_message(env, 2000000, MSG_TYPE_P2P_TAGGED_MESSAGE, STATUS, 1, "federate 1",
			       1, &status);
	if (value % 8 == 0)
		lf_send_message(MSG_TYPE_P2P_MESSAGE, ALARM, 1, "federate 1", 1, &status);
}

static void new_sensor(void)
{
	sensor.reaction = (reaction_t){ sense, NULL, 0, false, NULL };
	sensor.timer = (trigger_t){ .reaction = &sensor.reaction, .is_timer = true,
				    .period = 10000000 };
	stub_trigger(&sensor.timer);
}

/* --- the logic -------------------------------------------------------------------------------- */

static lf_action_base_t actions[PORTS];
static trigger_t inputs[PORTS];
static reaction_t reactions[PORTS];
static int numbers[PORTS] = { READING, STATUS, ALARM };
lf_action_base_t *_lf_action_table[] = { &actions[0], &actions[1], &actions[2] };
size_t _lf_action_table_size = PORTS;

static void print(void *number)
{
	int port = *(int *)number;
	trigger_t *input = &inputs[port];
	tag_t tag = stub_environment()->current_tag;
	int64_t value = 0;
	lf_token_t *token = input->tmplt.token;
	memcpy(&value, token->value, token->length < 8 ? token->length : 8);
	bool is_tardy = port != ALARM && lf_tag_compare(input->intended_tag, tag) < 0;
	/* Intended tags are of the sender's clock, whose start need not be ours. */
	printf("%s %" PRId64 " %zu %" PRId64 " %" PRIu32 " %s\n", names[port], value,
	       token->length, input->intended_tag.time - lf_time_start(), tag.microstep,
	       is_tardy ? "tardy" : "in-time");
}

static void new_logic(void)
{
	for (int i = 0; i < PORTS; i++) {
		reactions[i] = (reaction_t){ print, &numbers[i], i, false, NULL };
		inputs[i].reaction = &reactions[i];
		inputs[i].last_known_status_tag = (tag_t){ NEVER, 0 };
		inputs[i].intended_tag = (tag_t){ NEVER, 0 };
		/* A physical connection makes nothing wait. */
		inputs[i].is_network = i != ALARM;
		actions[i].trigger = &inputs[i];
		stub_trigger(&inputs[i]);
	}
	stub_maxwait(FOREVER);
}

/* --- sockets ---------------------------------------------------------------------------------- */

static int accepted(const char *port_file)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	char name[4096];
	int server = socket(AF_INET, SOCK_STREAM, 0);
	assert(server >= 0 && bind(server, (struct sockaddr *)&address, length) == 0);
	assert(getsockname(server, (struct sockaddr *)&address, &length) == 0);
	assert(listen(server, 1) == 0);
	snprintf(name, sizeof(name), "%s.new", port_file);
	FILE *file = fopen(name, "w");
	assert(file);
	fprintf(file, "%u\n", ntohs(address.sin_port));
	fclose(file);
	assert(rename(name, port_file) == 0);
	return accept(server, NULL, NULL);
}

static int connected(const char *port_file)
{
	unsigned port = 0;
	while (port == 0) {
		FILE *file = fopen(port_file, "r");
		if (file && fscanf(file, "%u", &port) != 1)
			port = 0;
		if (file)
			fclose(file);
		usleep(1000);
	}
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int client = socket(AF_INET, SOCK_STREAM, 0);
	assert(client >= 0);
	assert(connect(client, (struct sockaddr *)&address, sizeof(address)) == 0);
	return client;
}

/* Octets of a file, and the socket that leads to the listener. */
static struct {
	unsigned char octets[65536];
	size_t count;
	int descriptor;
} feed;

/* Writes each message into the socket when the sensor has sent it: 2 ms before its tag. */
static void *feed_all(void *unused)
{
	(void)unused;
	for (size_t at = 0, length; at < feed.count; at += length) {
		const unsigned char *message = feed.octets + at;
		bool is_absent = message[0] == MSG_TYPE_PORT_ABSENT;
		bool is_physical = message[0] == MSG_TYPE_P2P_MESSAGE;
		length = is_absent ? LF_ABSENT : (is_physical ? 9 : LF_HEADER) +
						 lf_decode32(message + 5);
		if (!is_physical) {
			uint64_t time = (uint64_t)lf_decode32(message + (is_absent ? 9 : 13));
			time = time << 32 | lf_decode32(message + (is_absent ? 5 : 9));
			int64_t until = (int64_t)time - 2000000 - lf_time_start();
			onbeat_sleep_until(lf_member_context(), until, NULL);
		}
		assert(write(feed.descriptor, message, length) == (ssize_t)length);
	}
	return NULL;
}

static int fed(const char *path)
{
	int pair[2];
	int file = open(path, O_RDONLY);
	assert(file >= 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	ssize_t got = read(file, feed.octets, sizeof(feed.octets));
	assert(got >= 0);
	close(file);
	feed.count = (size_t)got;
	feed.descriptor = pair[1];
	lf_member_thread(feed_all, NULL);
	return pair[0];
}

static void connect_federates(void)
{
	bool is_file = strncmp(other, "octets:", 7) == 0;
	bool is_sensor = _lf_my_fed_id == 0;
	int descriptor;
	if (is_file && is_sensor)
		descriptor = open(other + 7, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	else if (is_file)
		descriptor = fed(other + 7);
	else if (strcmp(other, "long") == 0)
		descriptor = open("/dev/null", O_RDWR);
	else
		descriptor = is_sensor ? connected(other) : accepted(other);
	assert(descriptor >= 0);
	if (is_sensor)
		_fed.net_for_outbound_p2p_connections[1] = stub_net(descriptor);
	else
		stub_listen(0, stub_net(descriptor));
}

void _lf_initialize_trigger_objects(void)
{
	lf_connect_to_rti("localhost", 15045);
	connect_federates();
	if (_lf_my_fed_id == 0)
		new_sensor();
	else
		new_logic();
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	_lf_my_fed_id = atoi(argv[1]);
	other = argv[3];
	stub_execute(atoll(argv[2]) * 1000000);
	printf("over the socket: %u tagged, %u physical, %u absent\n",
	       stub_over_socket[MSG_TYPE_P2P_TAGGED_MESSAGE],
	       stub_over_socket[MSG_TYPE_P2P_MESSAGE], stub_over_socket[MSG_TYPE_PORT_ABSENT]);
	return 0;
}
