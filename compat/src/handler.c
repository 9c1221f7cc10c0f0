/*
 * handler.c: handlers, and what is told to the user.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include <stdarg.h>

#include "internal.h"

void nh_debug(enum nc_loglevel level, const struct channel *ch, const char *format, ...)
{
	bool verbose = ch && ch->nh && ch->nh->verbose;
	if (level < NC_WARN && !verbose)
		return;
	char text[512];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	size_t length = strlen(text);
	if (length && text[length - 1] == '\n')
		text[length - 1] = 0;
	/* One call, so that lines of several threads do not mix. */
	if (ch)
		fprintf(stderr, "netchan: [%" PRIu64 "] %s\n", ch->sidw.s64, text);
	else
		fprintf(stderr, "netchan: %s\n", text);
}

static void handler_free(struct nethandler *nh)
{
	log_close(nh->logger);
	pthread_mutex_destroy(&nh->core->lock);
	free(nh->core);
	free(nh);
}

struct nethandler *nh_create_init(const char *ifname, size_t hmap_size, const char *logfile)
{
	if (!ifname || hmap_size > SIZE_MAX / (2 * sizeof(struct nc_callback)))
		return NULL;
	struct nethandler *nh = calloc(1, sizeof(*nh));
	struct nc_core *core =
		calloc(1, sizeof(*core) + hmap_size * sizeof(struct nc_callback));
	if (!nh || !core) {
		free(nh);
		free(core);
		return NULL;
	}
	pthread_mutex_init(&core->lock, NULL);
	nh->core = core;
	nh->hmap_sz = hmap_size;
	nh->ftrace_break_us = -1;
	nh->in_run = nc_in_run();
	if (strlen(ifname) >= sizeof(nh->ifname) && !nh->in_run) {
		nh_debug(NC_ERROR, NULL, "there is no network interface \"%s\"", ifname);
		handler_free(nh);
		return NULL;
	}
	strncpy(nh->ifname, ifname, sizeof(nh->ifname) - 1);
	if (logfile && logfile[0] && !(nh->logger = log_create(logfile))) {
		handler_free(nh);
		return NULL;
	}
	if (!nc_backend_enter(nh)) {
		handler_free(nh);
		return NULL;
	}
	return nh;
}

void nh_destroy(struct nethandler **nh)
{
	if (!nh || !*nh)
		return;
	if (nc_serving() && nc_serving()->nh == *nh) {
		nh_stop(*nh);
		log_stop((*nh)->logger);
		nh_debug(NC_WARN, NULL, "a callback destroys its own handler: its channels are stopped, "
					"and it is not freed");
		*nh = NULL;
		return;
	}
	while ((*nh)->du_tx_head) {
		struct channel *ch = (*nh)->du_tx_head;
		chan_destroy(&ch);
	}
	while ((*nh)->du_rx_head) {
		struct channel *ch = (*nh)->du_rx_head;
		chan_destroy(&ch);
	}
	nc_backend_leave(*nh);
	/* Of an abandoned one, all that a thread may still use remains. */
	if ((*nh)->core->abandoned)
		log_stop((*nh)->logger);
	else
		handler_free(*nh);
	*nh = NULL;
}

void nh_stop(struct nethandler *nh)
{
	if (!nh)
		return;
	/* No lock: a signal handler may have interrupted who holds it. */
	for (struct channel *ch = nh->du_tx_head; ch; ch = ch->next)
		chan_stop(ch);
	for (struct channel *ch = nh->du_rx_head; ch; ch = ch->next)
		chan_stop(ch);
}

void nh_set_verbose(struct nethandler *nh, bool verbose)
{
	if (nh)
		nh->verbose = verbose;
}

void nh_set_srp(struct nethandler *nh, bool use_srp)
{
	if (nh)
		nh->use_srp = use_srp;
}

bool nh_set_tx_prio(struct nethandler *nh, enum stream_class sc, int tx_prio)
{
	if (!nh || tx_prio < 0 || tx_prio > 15 || nh->du_tx_head)
		return false;
	switch (sc) {
	case SC_CLASS_A:
		nh->tx_sock_prio[0] = tx_prio;
		return true;
	case SC_CLASS_B:
		nh->tx_sock_prio[1] = tx_prio;
		return true;
	case SC_TAS:
		nh->tx_sock_prio[2] = tx_prio;
		return true;
	default:
		return false;
	}
}

void nh_set_trace_breakval(struct nethandler *nh, int break_us)
{
	if (nh)
		nh->ftrace_break_us = break_us > 0 && break_us <= 1000000 ? break_us : -1;
}

void nh_enable_ftrace(struct nethandler *nh)
{
	if (nh)
		nh->ftrace = true;
}

void nh_rotate_logs(struct nethandler *nh)
{
	if (nh)
		log_flush_and_rotate(nh->logger);
}

static void list(const struct channel *ch, const char *kind)
{
	for (; ch; ch = ch->next)
		printf("%s stream %" PRIu64 " \"%s\": %u octets every %.3f ms%s\n", kind,
		       ch->sidw.s64, ch->name, ch->payload_size, (double)ch->interval_ns / 1e6,
		       ch->stopping ? ", stopped" : "");
}

void nh_list_active_channels(struct nethandler *nh)
{
	if (!nh)
		return;
	pthread_mutex_lock(&nh->core->lock);
	list(nh->du_rx_head, "reads");
	list(nh->du_tx_head, "sends");
	pthread_mutex_unlock(&nh->core->lock);
}

static int count(struct nethandler *nh, struct channel *const *head)
{
	int number = 0;
	pthread_mutex_lock(&nh->core->lock);
	for (const struct channel *ch = *head; ch; ch = ch->next)
		number++;
	pthread_mutex_unlock(&nh->core->lock);
	return number;
}

int nh_get_num_tx(struct nethandler *nh)
{
	return nh ? count(nh, &nh->du_tx_head) : -EINVAL;
}

int nh_get_num_rx(struct nethandler *nh)
{
	return nh ? count(nh, &nh->du_rx_head) : -EINVAL;
}
