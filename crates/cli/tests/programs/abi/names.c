/* Calls of every function with one argument that is NULL: calls.h, which the test makes from the
 * header. Writes `c` and reads `d`. SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "../common.h"

static onbeat *run;
static onbeat_talker *talker;
static onbeat_listener *listener;
static onbeat_selector *selector;
static _Alignas(8) unsigned char octets[8];

static void *body(void *argument)
{
	return argument;
}

static onbeat_thread *thread(void)
{
	onbeat_thread *created;

	must(onbeat_thread_create(run, body, NULL, &created));
	return created;
}

static void accepted(onbeat_status status, const char *call)
{
	if (status == ONBEAT_E_ARGUMENT) {
		fprintf(stderr, "%s is refused: %s\n", call, onbeat_last_error());
		exit(EXIT_FAILURE);
	}
}

static void refused(onbeat_status status, const char *call, const char *why)
{
	if (status != ONBEAT_E_ARGUMENT || strcmp(onbeat_last_error(), why)) {
		fprintf(stderr, "%s gives %d, \"%s\" instead of \"%s\"\n", call, (int)status,
			onbeat_last_error(), why);
		exit(EXIT_FAILURE);
	}
}

/* What stands behind pointers is named too. */
static void of_members(const onbeat_listener *reader)
{
	const onbeat_listener *const readers[] = { reader, NULL };
	onbeat_interface interface = { .name = NULL };
	onbeat_channel channel = { .name = NULL };
	size_t index;
	onbeat *none;

	refused(onbeat_select(run, readers, 2, 0, &index), "select", "`listeners[1]` is NULL");
	refused(onbeat_select(run, readers, 0, 0, &index), "select",
		"`count` is 0: there is nothing to wait for");
	refused(onbeat_select(run, readers, 257, 0, &index), "select",
		"`count` is 257, more than 256");
	refused(onbeat_open_interface(&interface, NULL, 0, &none), "open_interface",
		"`interface->name` is NULL");
	interface.name = "\xff";
	refused(onbeat_open_interface(&interface, NULL, 0, &none), "open_interface",
		"`interface->name` is not UTF-8");
	interface.name = "nosuch0";
	interface.transport = 4;
	refused(onbeat_open_interface(&interface, NULL, 0, &none), "open_interface",
		"`interface->transport` is not an onbeat_transport");
	refused(onbeat_declare(run, &channel), "declare", "`channel->name` is NULL");
	channel.name = "e";
	channel.traffic_class = 4;
	refused(onbeat_declare(run, &channel), "declare",
		"`channel->traffic_class` is not an onbeat_class");
	channel.traffic_class = ONBEAT_CLASS_B;
	refused(onbeat_declare(run, &channel), "declare",
		"`context` is a run's, where the description declares the channels");
	refused(onbeat_talker_open(run, "\xff", 8, &talker), "talker_open", "`name` is not UTF-8");
	refused(onbeat_work_until(run, 0, 0, 100, 0), "work_until", "`priority` is not 0 to 99");
	refused(onbeat_wake(run, (const uint32_t *)(const void *)(octets + 1)), "wake",
		"`word` is not at a multiple of its size");
}

int main(void)
{
	const onbeat_interface interface = { .name = "nosuch0" };
	const onbeat_channel channel = { .name = "e" };
	const onbeat_listener *reader;

	must(onbeat_open(&run));
	must(onbeat_talker_open(run, "c", sizeof(octets), &talker));
	must(onbeat_listener_open(run, "d", sizeof(octets), &listener));
	must(onbeat_start(run));
	/* Calls that would wait do not. */
	must(onbeat_talker_limit(talker, 0));
	must(onbeat_listener_limit(listener, 0));
	reader = listener;
	must(onbeat_selector_open(run, &reader, 1, &selector));
#include "calls.h"
	of_members(reader);
	onbeat_talker_close(talker);
	onbeat_selector_close(selector);
	onbeat_listener_close(listener);
	onbeat_close(run);
	return 0;
}
