/*
 * standalone.c: the program's one handler, and what it is made with.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "internal.h"

#define DEFAULT_HMAP_SIZE 42

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct nethandler *handler;
static char nic[256] = "eth0";
static char *logfile;
static int hmap_size = DEFAULT_HMAP_SIZE;
static bool use_srp, use_ftrace, verbose, keep_cstate;
static int break_us = -1;
static int tx_prio[3];

int nc_set_nic(const char *name)
{
	if (!name || strlen(name) >= sizeof(nic))
		return -EINVAL;
	strcpy(nic, name);
	return 0;
}

void nc_set_hmap_size(int sz)
{
	if (sz > 0)
		hmap_size = sz;
}

void nc_use_srp(void)
{
	use_srp = true;
}

void nc_use_ftrace(void)
{
	use_ftrace = true;
}

void nc_breakval(int us)
{
	break_us = us;
}

void nc_verbose(void)
{
	verbose = true;
}

void nc_set_logfile(const char *name)
{
	free(logfile);
	logfile = name ? strdup(name) : NULL;
}

void nc_log_delay(void)
{
}

/* Of all handlers, also of those that the program makes itself. */
void nc_keep_cstate(void)
{
	__atomic_store_n(&keep_cstate, true, __ATOMIC_RELAXED);
}

bool nc_keeps_cstate(void)
{
	return __atomic_load_n(&keep_cstate, __ATOMIC_RELAXED);
}

void nc_use_termtag(const char *devpath)
{
	nh_debug(NC_WARN, NULL, "%s: marks on a terminal are not provided",
		 devpath ? devpath : "no device");
}

void nc_tx_sock_prio(int prio, enum stream_class sc)
{
	if (prio < 0 || prio > 15)
		return;
	tx_prio[sc == SC_CLASS_A ? 0 : sc == SC_CLASS_B ? 1 : 2] = prio;
}

int nh_create_init_standalone(void)
{
	pthread_mutex_lock(&lock);
	if (!handler) {
		handler = nh_create_init(nic, (size_t)hmap_size, logfile);
		if (handler) {
			nh_set_verbose(handler, verbose);
			nh_set_srp(handler, use_srp);
			nh_set_trace_breakval(handler, break_us);
			if (use_ftrace)
				nh_enable_ftrace(handler);
			memcpy(handler->tx_sock_prio, tx_prio, sizeof(tx_prio));
		}
	}
	int result = handler ? 0 : -1;
	pthread_mutex_unlock(&lock);
	return result;
}

/* Of Timed C: the end of one task is not that of the others. */
void nh_destroy_standalone(void)
{
	if (nc_backend_is_timedc())
		return;
	pthread_mutex_lock(&lock);
	nh_destroy(&handler);
	pthread_mutex_unlock(&lock);
}

int nc_get_chan_idx(const char *name, const struct channel_attrs *attrs, int arr_size)
{
	if (!name || !attrs)
		return -1;
	for (int i = 0; i < arr_size; i++)
		if (strncmp(attrs[i].name, name, sizeof(attrs[i].name)) == 0)
			return i;
	return -1;
}

const struct channel_attrs *nc_get_chan_ref(const char *name, const struct channel_attrs *attrs,
					    int arr_size)
{
	int i = nc_get_chan_idx(name, attrs, arr_size);
	return i < 0 ? NULL : &attrs[i];
}

struct channel_attrs *nc_get_chan(const char *name, const struct channel_attrs *attrs,
				  int arr_size)
{
	const struct channel_attrs *row = nc_get_chan_ref(name, attrs, arr_size);
	struct channel_attrs *copy = row ? malloc(sizeof(*copy)) : NULL;
	if (copy)
		*copy = *row;
	return copy;
}

void nc_standalone_end(void)
{
	if (handler)
		log_stop(handler->logger);
}

/* The end of the row that is there, where tasks share it or a program gets only one. */
static struct channel *find(const struct channel_attrs *row, bool tx)
{
	if (!nc_in_run() && !nc_backend_is_timedc())
		return NULL;
	pthread_mutex_lock(&handler->core->lock);
	struct channel *ch = tx ? handler->du_tx_head : handler->du_rx_head;
	while (ch && (ch->sidw.s64 != row->stream_id || ch->payload_size != row->size ||
		      strncmp(ch->name, row->name, sizeof(ch->name)) != 0))
		ch = ch->next;
	pthread_mutex_unlock(&handler->core->lock);
	return ch;
}

struct channel *nc_standalone(const char *array, const char *name, bool tx,
			      struct channel_attrs *rows, int count)
{
	if (!name || !rows || count <= 0)
		return NULL;
	int i = nc_get_chan_idx(name, rows, count);
	if (i < 0) {
		nh_debug(NC_ERROR, NULL, "%s has no channel \"%s\"", array, name);
		return NULL;
	}
	if (!nc_manifest_valid(array, rows, count) || nh_create_init_standalone() != 0)
		return NULL;
	struct channel *found = find(&rows[i], tx);
	if (found)
		return found;
	return tx ? chan_create_tx(handler, &rows[i]) : chan_create_rx(handler, &rows[i]);
}

struct channel *chan_create_standalone(const char *name, bool tx, struct channel_attrs *attrs,
				       int arr_size)
{
	return nc_standalone("nc_channels", name, tx, attrs, arr_size);
}
