/*
 * federate.c: what a federate of the stand-in runtime has to do with others: it sends over sockets,
 * and a thread for each sender schedules what comes, at its tag or, when that has passed, tardy.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "reactor_c.h"

#include "../../src/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

federate_instance_t _fed;
int _lf_my_fed_id = -1;
unsigned stub_over_socket[256];

int lf_fed_id(void)
{
	return _lf_my_fed_id;
}

void lf_connect_to_rti(const char *host, int port)
{
	(void)host;
	(void)port;
}

static int write_all(int descriptor, const unsigned char *octets, size_t count)
{
	while (count > 0) {
		ssize_t written = write(descriptor, octets, count);
		if (written < 0 && errno != EINTR)
			return -1;
		if (written > 0) {
			octets += written;
			count -= (size_t)written;
		}
	}
	return 0;
}

static int send_octets(unsigned short federate, const unsigned char *octets, size_t count)
{
	const socket_priv_t *net = _fed.net_for_outbound_p2p_connections[federate];
	return net ? write_all(net->socket_descriptor, octets, count) : -1;
}

int lf_send_message(int type, unsigned short port, unsigned short federate, const char *name,
		    size_t length, unsigned char *message)
{
	unsigned char octets[LF_HEADER];
	const struct lf_header header = { (uint8_t)type, port, federate, (uint32_t)length, 0, 0 };
	(void)name;
	lf_encode(&header, octets);
	if (send_octets(federate, octets, 9) != 0)
		return -1;
	return send_octets(federate, message, length);
}

int lf_send_tagged_message(environment_t *env, interval_t additional_delay, int message_type,
			   unsigned short port, unsigned short federate,
			   const char *next_destination_str, size_t length,
			   unsigned char *message)
{
	unsigned char octets[LF_HEADER];
	tag_t tag = lf_delay_tag(env->current_tag, additional_delay);
	const struct lf_header header = { (uint8_t)message_type, port, federate, (uint32_t)length,
					  tag.time, tag.microstep };
	(void)next_destination_str;
	if (lf_is_tag_after_stop_tag(env, tag))
		return -1;
	lf_encode(&header, octets);
	if (send_octets(federate, octets, LF_HEADER) != 0)
		return -1;
	return send_octets(federate, message, length);
}

void lf_send_port_absent_to_federate(environment_t *env, interval_t additional_delay,
				     unsigned short port, unsigned short federate)
{
	unsigned char octets[LF_HEADER], absent[LF_ABSENT];
	tag_t tag = additional_delay == NEVER ? env->current_tag :
						lf_delay_tag(env->current_tag, additional_delay);
	const struct lf_header header = { MSG_TYPE_PORT_ABSENT, port, federate, 0, tag.time,
					  tag.microstep };
	lf_encode(&header, octets);
	/* No length. */
	memcpy(absent, octets, 5);
	memcpy(absent + 5, octets + 9, 12);
	send_octets(federate, absent, LF_ABSENT);
}

/* --- receiving -------------------------------------------------------------------------------- */

static void known_up_to(trigger_t *trigger, tag_t tag)
{
	if (lf_tag_compare(trigger->last_known_status_tag, tag) < 0)
		trigger->last_known_status_tag = tag;
}

static trigger_t *trigger_of(uint16_t port)
{
	assert(port < _lf_action_table_size);
	return _lf_action_table[port]->trigger;
}

static int handle_tagged(net_abstraction_t net)
{
	unsigned char rest[LF_HEADER - 1];
	uint16_t port, federate;
	size_t length;
	tag_t tag;
	if (read_from_net_close_on_error(net, sizeof(rest), rest))
		return -1;
	extract_timed_header(rest, &port, &federate, &length, &tag);
	assert(federate == _lf_my_fed_id);
	unsigned char *payload = malloc(length ? length : 1);
	assert(payload);
	if (read_from_net_close_on_error(net, length, payload)) {
		free(payload);
		return -1;
	}
	environment_t *env = stub_environment();
	trigger_t *trigger = trigger_of(port);
	lf_mutex_lock(&env->mutex);
	tag_t previous = trigger->intended_tag;
	tag_t at = tag;
	/* Messages are in order, and nothing said that there is none. */
	if (lf_tag_compare(tag, trigger->last_known_status_tag) <= 0)
		printf("overtaken\n");
	if (lf_tag_compare(tag, env->current_tag) <= 0)
		at = (tag_t){ env->current_tag.time, env->current_tag.microstep + 1 };
	trigger->intended_tag = tag;
	_lf_schedule_at_tag(env, trigger, at,
			    _lf_new_token((token_type_t *)trigger, payload, length));
	trigger->intended_tag = previous;
	known_up_to(trigger, at);
	lf_notify_of_event(env);
	lf_mutex_unlock(&env->mutex);
	return 0;
}

static int handle_physical(net_abstraction_t net)
{
	unsigned char rest[8];
	if (read_from_net_close_on_error(net, sizeof(rest), rest))
		return -1;
	size_t length = lf_decode32(rest + 4);
	unsigned char *payload = malloc(length ? length : 1);
	assert(payload);
	int result = read_from_net_close_on_error(net, length, payload);
	environment_t *env = stub_environment();
	trigger_t *trigger = trigger_of(lf_decode16(rest));
	if (result != 0) {
		free(payload);
		return -1;
	}
	lf_mutex_lock(&env->mutex);
	tag_t at = { env->current_tag.time, env->current_tag.microstep + 1 };
	trigger->intended_tag = at;
	_lf_schedule_at_tag(env, trigger, at,
			    _lf_new_token((token_type_t *)trigger, payload, length));
	lf_notify_of_event(env);
	lf_mutex_unlock(&env->mutex);
	return 0;
}

static int handle_absent(net_abstraction_t net)
{
	unsigned char rest[LF_ABSENT - 1], octets[LF_HEADER] = { 0 };
	struct lf_header header;
	if (read_from_net_close_on_error(net, sizeof(rest), rest))
		return -1;
	memcpy(octets + 1, rest, 4);
	memcpy(octets + 9, rest + 4, 12);
	lf_decode(octets, &header);
	environment_t *env = stub_environment();
	lf_mutex_lock(&env->mutex);
	known_up_to(trigger_of(header.port), (tag_t){ header.time, header.microstep });
	lf_notify_of_event(env);
	lf_mutex_unlock(&env->mutex);
	return 0;
}

static void *listen_to(void *argument)
{
	uint16_t federate = (uint16_t)(uintptr_t)argument;
	net_abstraction_t net = _fed.net_for_inbound_p2p_connections[federate];
	environment_t *env = stub_environment();
	unsigned char type;
	int result = 0;
	while (result == 0 && read_from_net_close_on_error(net, 1, &type) == 0) {
		if (type == MSG_TYPE_P2P_TAGGED_MESSAGE)
			result = handle_tagged(net);
		else if (type == MSG_TYPE_P2P_MESSAGE)
			result = handle_physical(net);
		else if (type == MSG_TYPE_PORT_ABSENT)
			result = handle_absent(net);
		else
			result = -1;
	}
	/* Nothing comes any more: all is known. */
	lf_mutex_lock(&env->mutex);
	for (size_t i = 0; i < _lf_action_table_size; i++)
		known_up_to(_lf_action_table[i]->trigger, (tag_t){ FOREVER, 0 });
	lf_notify_of_event(env);
	lf_mutex_unlock(&env->mutex);
	return NULL;
}

void stub_listen(uint16_t federate, net_abstraction_t net)
{
	_fed.net_for_inbound_p2p_connections[federate] = net;
#ifdef ONBEAT_LF_INLINE
	lf_member_thread(listen_to, (void *)(uintptr_t)federate);
#else
	pthread_t thread;
	assert(pthread_create(&thread, NULL, listen_to, (void *)(uintptr_t)federate) == 0);
	pthread_detach(thread);
#endif
}
