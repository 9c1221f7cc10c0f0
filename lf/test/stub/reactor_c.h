/*
 * reactor_c.h: a stand-in for the reactor runtime of Lingua Franca's C target, as far as lf/ uses
 * it: the same names and types, executed by runtime.c and federate.c. It is written for tests: one
 * thread executes all reactions, and with ONBEAT_LF_INLINE time is that of an Onbeat run.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- time ------------------------------------------------------------------------------------- */

typedef int64_t instant_t;
typedef int64_t interval_t;
typedef uint32_t microstep_t;
typedef struct {
	instant_t time;
	microstep_t microstep;
} tag_t;

#define NEVER INT64_MIN
#define FOREVER INT64_MAX

int lf_tag_compare(tag_t a, tag_t b);
/* The tag of what is sent at `tag` over a connection: NEVER is a delay of none, 0 a microstep. */
tag_t lf_delay_tag(tag_t tag, interval_t delay);
instant_t lf_time_physical(void);
instant_t lf_time_start(void);

/* --- tokens, triggers, reactions, environments ------------------------------------------------ */

typedef int trigger_handle_t;
typedef pthread_mutex_t lf_mutex_t;
typedef pthread_t lf_thread_t;
typedef struct environment_t environment_t;
typedef struct trigger_t trigger_t;

typedef struct {
	size_t element_size;
} token_type_t;

typedef struct lf_token_t {
	void *value;
	size_t length;
	token_type_t *type;
	size_t ref_count;
} lf_token_t;

typedef struct {
	token_type_t type;
	lf_token_t *token;
} token_template_t;

typedef struct reaction_t {
	void (*function)(void *self);
	void *self;
	int level;
	bool queued;
	struct reaction_t *next;
} reaction_t;

struct trigger_t {
	token_template_t tmplt;
	reaction_t *reaction;
	/* A timer has a period above 0, or 0 for once. */
	bool is_timer;
	interval_t offset;
	interval_t period;
	/* Of an input from another federate. */
	bool is_network;
	tag_t last_known_status_tag;
	tag_t intended_tag;
	trigger_t *next;
};

typedef struct {
	environment_t *environment;
} self_base_t;

typedef struct {
	token_template_t tmplt;
	trigger_t *trigger;
	self_base_t *parent;
} lf_action_base_t;

typedef struct {
	bool is_present;
	reaction_t **readers;
	size_t reader_count;
} lf_port_base_t;

struct environment_t {
	tag_t current_tag;
	tag_t stop_tag;
	bool execution_started;
	lf_mutex_t mutex;
};

int _lf_get_environments(environment_t **environments);
lf_token_t *_lf_new_token(token_type_t *type, void *value, size_t length);
trigger_handle_t _lf_schedule_at_tag(environment_t *env, trigger_t *trigger, tag_t tag,
				     lf_token_t *token);
bool lf_is_tag_after_stop_tag(environment_t *env, tag_t tag);
int lf_notify_of_event(environment_t *env);
int lf_mutex_lock(lf_mutex_t *mutex);
int lf_mutex_unlock(lf_mutex_t *mutex);
void lf_request_stop(void);
void lf_set_present(lf_port_base_t *port);

#define lf_set(port, val)                                  \
	do {                                               \
		(port)->value = (val);                     \
		lf_set_present((lf_port_base_t *)(port));  \
	} while (0)

/* --- what lfc would generate calls ------------------------------------------------------------ */

/* Of the model: fills in its reactors, and registers them by what follows. */
void _lf_initialize_trigger_objects(void);
void stub_startup(reaction_t *reaction);
void stub_shutdown(reaction_t *reaction);
void stub_trigger(trigger_t *trigger);
/* How long a tag waits for inputs of other federates that are not known; FOREVER. */
void stub_maxwait(interval_t maxwait);
environment_t *stub_environment(void);
/* Executes for `duration`. */
int stub_execute(interval_t duration);

/* --- federated -------------------------------------------------------------------------------- */

#ifndef NUMBER_OF_FEDERATES
#define NUMBER_OF_FEDERATES 2
#endif

#ifndef STUB_TAGGED
#define STUB_TAGGED 18
#endif
#define MSG_TYPE_TAGGED_MESSAGE 5
#define MSG_TYPE_P2P_MESSAGE 17
#define MSG_TYPE_P2P_TAGGED_MESSAGE STUB_TAGGED
#define MSG_TYPE_PORT_ABSENT 23

typedef void *net_abstraction_t;

typedef struct socket_priv_t {
	int socket_descriptor;
} socket_priv_t;

typedef struct federate_instance_t {
	net_abstraction_t net_for_inbound_p2p_connections[NUMBER_OF_FEDERATES];
	net_abstraction_t net_for_outbound_p2p_connections[NUMBER_OF_FEDERATES];
} federate_instance_t;

extern federate_instance_t _fed;
extern int _lf_my_fed_id;

int lf_fed_id(void);
void lf_connect_to_rti(const char *host, int port);
int lf_send_message(int type, unsigned short port, unsigned short federate, const char *name,
		    size_t length, unsigned char *message);
int lf_send_tagged_message(environment_t *env, interval_t additional_delay, int message_type,
			   unsigned short port, unsigned short federate,
			   const char *next_destination_str, size_t length,
			   unsigned char *message);
void lf_send_port_absent_to_federate(environment_t *env, interval_t additional_delay,
				     unsigned short port, unsigned short federate);
int read_from_net_close_on_error(net_abstraction_t net, size_t num_bytes, unsigned char *buffer);
void extract_timed_header(unsigned char *buffer, uint16_t *port, uint16_t *federate,
			  size_t *length, tag_t *tag);

/* The actions of this federate's inputs from others, by the number of the port. */
extern lf_action_base_t *_lf_action_table[];
extern size_t _lf_action_table_size;

/* Listens to what a federate sends over this connection. */
void stub_listen(uint16_t federate, net_abstraction_t net);
/* A connection over an open socket. */
net_abstraction_t stub_net(int descriptor);
/* Counts of what came over sockets, by type. */
extern unsigned stub_over_socket[256];
