/*
 * manifest.c: what is wrong with a manifest, and what a link can carry.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "internal.h"

/* Of the link that reservations may take. */
#define SHARE_PERCENT 75

/* Octets of the wire besides the message: preamble 8, header with tag 18, stream header 24, FCS 4,
 * gap 12; and the least that a frame occupies with preamble and gap. */
#define WIRE_OVERHEAD 66
#define WIRE_LEAST 88

static bool class_known(enum stream_class sc)
{
	return sc == SC_TAS || sc == SC_CLASS_A || sc == SC_CLASS_B;
}

static bool all_zero(const uint8_t *octets, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (octets[i])
			return false;
	return true;
}

static bool name_ends(const struct channel_attrs *row)
{
	return memchr(row->name, 0, sizeof(row->name)) != NULL;
}

/* "nc_channels[2] "speed": ..." on standard error. */
static bool complain(const char *array, const struct channel_attrs *rows, int i, const char *what)
{
	const struct channel_attrs *row = &rows[i];
	nh_debug(NC_ERROR, NULL, "%s[%d] \"%.*s\" (stream %" PRIu64 "): %s", array, i,
		 (int)sizeof(row->name), row->name, row->stream_id, what);
	return false;
}

static bool row_valid(const char *array, const struct channel_attrs *rows, int i)
{
	const struct channel_attrs *row = &rows[i];
	bool valid = true;
	char text[96];
	if (!name_ends(row))
		valid = complain(array, rows, i, "the name has more than 31 characters");
	if (row->stream_id == 0)
		valid = complain(array, rows, i, "the stream id is 0");
	if (all_zero(row->dst, sizeof(row->dst)))
		valid = complain(array, rows, i, "the destination address is zero");
	if (!class_known(row->sc)) {
		snprintf(text, sizeof(text), "the class %ld is none of SC_TAS, SC_CLASS_A, SC_CLASS_B",
			 (long)row->sc);
		valid = complain(array, rows, i, text);
	}
	if (row->size == 0 || row->size > NC_PAYLOAD_MAX) {
		snprintf(text, sizeof(text), "the size %u is not between 1 and %d octets", row->size,
			 NC_PAYLOAD_MAX);
		valid = complain(array, rows, i, text);
	}
	if (row->interval_ns == 0)
		valid = complain(array, rows, i, "the interval (or frequency) is 0");
	if (row->interval_ns > INT64_MAX)
		valid = complain(array, rows, i, "the interval is more than 292 years");
	return valid;
}

static bool rows_differ(const char *array, const struct channel_attrs *rows, int i, int before)
{
	bool valid = true;
	char text[96];
	if (rows[i].stream_id && rows[i].stream_id == rows[before].stream_id) {
		snprintf(text, sizeof(text), "row %d has the same stream id", before);
		valid = complain(array, rows, i, text);
	}
	bool named = rows[i].name[0] && name_ends(&rows[i]) && name_ends(&rows[before]);
	if (named && strcmp(rows[i].name, rows[before].name) == 0) {
		snprintf(text, sizeof(text), "row %d has the same name", before);
		valid = complain(array, rows, i, text);
	}
	return valid;
}

bool nc_manifest_valid(const char *array, const struct channel_attrs *rows, int count)
{
	bool valid = true;
	for (int i = 0; i < count; i++) {
		valid &= row_valid(array, rows, i);
		for (int before = 0; before < i; before++)
			valid &= rows_differ(array, rows, i, before);
	}
	return valid;
}

/* What a channel's messages take of the wire at its declared rate. */
static uint64_t bits_per_second(uint16_t size, uint64_t interval_ns)
{
	uint64_t octets = (uint64_t)size + WIRE_OVERHEAD;
	if (octets < WIRE_LEAST)
		octets = WIRE_LEAST;
	return octets * 8 * NS_IN_SEC / interval_ns;
}

static bool same_stream(const struct channel *ch, const struct channel_attrs *attrs)
{
	return ch->payload_size == attrs->size && ch->sc == attrs->sc &&
	       ch->interval_ns == attrs->interval_ns &&
	       memcmp(ch->dst, attrs->dst, sizeof(ch->dst)) == 0;
}

struct census {
	uint64_t bits;
	bool disagrees;
	bool taken;
	bool own;
};

static void count_list(struct census *census, const struct channel *list,
		       const struct channel_attrs *attrs, bool listed_tx, bool tx)
{
	for (const struct channel *ch = list; ch; ch = ch->next) {
		bool same = ch->sidw.s64 == attrs->stream_id;
		census->disagrees |= same && !same_stream(ch, attrs);
		census->taken |= same && tx && listed_tx;
		census->own |= same && tx != listed_tx && (listed_tx || !ch->end->own_host);
		/* A stream that several ends read comes over the link once. */
		if (listed_tx == tx && !same)
			census->bits += bits_per_second(ch->payload_size, ch->interval_ns);
	}
}

bool nc_admit(struct nethandler *nh, const struct channel_attrs *attrs, bool tx, bool *own)
{
	struct census census = {0};
	nc_backend_lock();
	for (struct nethandler *h = nc_backend_handlers(); h; h = h->core->next) {
		if (strcmp(h->ifname, nh->ifname) != 0)
			continue;
		pthread_mutex_lock(&h->core->lock);
		count_list(&census, h->du_tx_head, attrs, true, tx);
		count_list(&census, h->du_rx_head, attrs, false, tx);
		pthread_mutex_unlock(&h->core->lock);
	}
	nc_backend_unlock();
	*own = census.own && !nh->in_run && !nic_is_loopback(nh->ifname);
	if (census.disagrees || census.taken) {
		nh_debug(NC_ERROR, NULL, "channel \"%s\": stream %" PRIu64 " is open already%s",
			 attrs->name, attrs->stream_id,
			 census.disagrees ? ", with other attributes" : " for sending");
		return false;
	}
	uint64_t more = bits_per_second(attrs->size, attrs->interval_ns);
	uint64_t limit = (uint64_t)nh->link_speed * 1000000 * SHARE_PERCENT / 100;
	/* The wrap is impossible: each term is at most 1.3e13. */
	if (nh->in_run || census.bits + more <= limit)
		return true;
	nh_debug(NC_ERROR, NULL,
		 "channel \"%s\": its %" PRIu64 " kb/s and the %" PRIu64 " kb/s of the channels that "
		 "are open already are more than %d %% of the %u Mb/s of %s",
		 attrs->name, more / 1000, census.bits / 1000, SHARE_PERCENT, nh->link_speed,
		 nh->ifname);
	return false;
}
