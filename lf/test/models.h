/*
 * models.h: the reactors of Onbeat.lf as lfc lays them out, for one type T. Their bodies are those
 * of Onbeat.lf: the test cuts them out, into files by the reactor's name and the reaction's number.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include "../include/onbeat_lf.h"
#include "stub/reactor_c.h"

typedef struct {
	int64_t count;
	int64_t noise[2];
} reading_t;

#ifndef T
#define T reading_t
#endif

typedef struct {
	lf_port_base_t base;
	T value;
} value_port_t;

typedef struct {
	lf_port_base_t base;
	interval_t value;
} time_port_t;

/* --- Transmit --------------------------------------------------------------------------------- */

typedef struct {
	self_base_t base;
	char *channel;
	value_port_t *in;
	struct onbeat_lf_talker *talker;
	reaction_t reaction[4];
} transmit_t;

static inline void transmit_0(void *argument)
{
	transmit_t *self = argument;
#include "Transmit_0.inc"
}

static inline void transmit_1(void *argument)
{
	(void)argument;
#include "Transmit_1.inc"
}

static inline void transmit_2(void *argument)
{
	transmit_t *self = argument;
	value_port_t *in = self->in;
#include "Transmit_2.inc"
}

static inline void transmit_3(void *argument)
{
	transmit_t *self = argument;
#include "Transmit_3.inc"
}

static inline void transmit_new(transmit_t *self, char *channel, value_port_t *in)
{
	static void (*const bodies[])(void *) = { transmit_0, transmit_1, transmit_2, transmit_3 };
	self->base.environment = stub_environment();
	self->channel = channel;
	self->in = in;
	for (int i = 0; i < 4; i++)
		self->reaction[i] = (reaction_t){ bodies[i], self, 4 + i, false, NULL };
	/* What opens ends comes before what it triggers. */
	self->reaction[0].level = 0;
	self->reaction[1].level = 1;
	stub_startup(&self->reaction[0]);
	stub_startup(&self->reaction[1]);
	stub_shutdown(&self->reaction[3]);
}

/* --- Receive ---------------------------------------------------------------------------------- */

typedef struct {
	lf_action_base_t base;
	onbeat_lf_arrival_t *value;
} arrived_t;

typedef struct {
	self_base_t base;
	char *channel;
	interval_t delay;
	struct onbeat_lf_listener *listener;
	arrived_t arrived;
	trigger_t trigger;
	value_port_t out;
	time_port_t late;
	reaction_t reaction[4];
} receive_t;

static inline void receive_0(void *argument)
{
	receive_t *self = argument;
	arrived_t *arrived = &self->arrived;
#include "Receive_0.inc"
}

static inline void receive_1(void *argument)
{
	(void)argument;
#include "Receive_1.inc"
}

static inline void receive_2(void *argument)
{
	receive_t *self = argument;
	arrived_t *arrived = &self->arrived;
	value_port_t *out = &self->out;
	time_port_t *late = &self->late;
	late->base.is_present = false;
	arrived->value = self->trigger.tmplt.token->value;
#include "Receive_2.inc"
}

static inline void receive_3(void *argument)
{
	receive_t *self = argument;
#include "Receive_3.inc"
}

static inline void receive_new(receive_t *self, char *channel, interval_t delay)
{
	static void (*const bodies[])(void *) = { receive_0, receive_1, receive_2, receive_3 };
	self->base.environment = stub_environment();
	self->channel = channel;
	self->delay = delay;
	self->arrived.base.trigger = &self->trigger;
	self->arrived.base.parent = &self->base;
	for (int i = 0; i < 4; i++)
		self->reaction[i] = (reaction_t){ bodies[i], self, i, false, NULL };
	self->trigger.reaction = &self->reaction[2];
	stub_startup(&self->reaction[0]);
	stub_startup(&self->reaction[1]);
	stub_shutdown(&self->reaction[3]);
	stub_trigger(&self->trigger);
}
