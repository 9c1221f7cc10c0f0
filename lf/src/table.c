/*
 * table.c: reads which connection is on which channel. The table may come from anywhere: any
 * octets give rows or a reason, within the limits of internal.h.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_LINE "onbeat-lf-channels 1"
#define FIELDS 7
/* Ten minutes: more is no delay of a network. */
#define DELAY_MAX 600000000000

/* A part of the text. */
struct part {
	const char *at;
	size_t length;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct part trimmed(struct part part)
{
	while (part.length > 0 && is_blank(part.at[0])) {
		part.at++;
		part.length--;
	}
	while (part.length > 0 && is_blank(part.at[part.length - 1]))
		part.length--;
	return part;
}

/* Takes the next word off `rest`; an empty one when there is none. */
static struct part word(struct part *rest)
{
	*rest = trimmed(*rest);
	struct part found = { rest->at, 0 };
	while (found.length < rest->length && !is_blank(found.at[found.length]))
		found.length++;
	rest->at += found.length;
	rest->length -= found.length;
	return found;
}

/* Takes the next line off `rest`, without what follows a `#`. */
static struct part line(struct part *rest)
{
	const char *end = memchr(rest->at, '\n', rest->length);
	size_t length = end ? (size_t)(end - rest->at) : rest->length;
	struct part found = { rest->at, length };
	rest->at += length + (end ? 1 : 0);
	rest->length -= length + (end ? 1 : 0);
	const char *comment = memchr(found.at, '#', found.length);
	if (comment)
		found.length = (size_t)(comment - found.at);
	return trimmed(found);
}

static bool number(struct part text, int64_t max, int64_t *value)
{
	int64_t read = 0;
	if (text.length == 0 || text.length > 18)
		return false;
	for (size_t i = 0; i < text.length; i++) {
		if (text.at[i] < '0' || text.at[i] > '9')
			return false;
		read = read * 10 + (text.at[i] - '0');
	}
	*value = read;
	return read <= max;
}

static bool is_name(struct part text)
{
	for (size_t i = 0; i < text.length; i++)
		if (text.at[i] <= ' ' || text.at[i] > '~')
			return false;
	return text.length > 0 && text.length < LF_NAME;
}

/* NULL when a line is a row; else what it lacks. */
static const char *row_of(struct part text, struct lf_row *row)
{
	struct part field[FIELDS];
	int64_t value;
	for (size_t i = 0; i < FIELDS; i++) {
		field[i] = word(&text);
		if (field[i].length == 0)
			return "a row has seven fields";
	}
	if (trimmed(text).length > 0)
		return "a row has seven fields";
	if (!number(field[0], UINT16_MAX, &value))
		return "the sending federate is a number up to 65535";
	row->from = (uint16_t)value;
	if (!number(field[2], UINT16_MAX, &value))
		return "the receiving federate is a number up to 65535";
	row->to = (uint16_t)value;
	if (!number(field[3], UINT16_MAX, &value))
		return "the receiving port is a number up to 65535";
	row->to_port = (uint16_t)value;
	if (!is_name(field[4]))
		return "a channel's name has 1 to 31 printing characters";
	memcpy(row->channel, field[4].at, field[4].length);
	row->channel[field[4].length] = '\0';
	if (!number(field[5], LF_PAYLOAD_MAX, &value))
		return "a payload has up to 1455 octets";
	row->octets = (uint32_t)value;
	if (!number(field[6], DELAY_MAX, &row->delay_ns) || row->delay_ns == 0)
		return "the delay is a number of nanoseconds from 1 to 10 minutes";
	return row->from == row->to ? "a connection has two federates" : NULL;
}

static int by_input(const void *left, const void *right)
{
	const struct lf_row *a = left, *b = right;
	uint32_t x = ((uint32_t)a->to << 16) | a->to_port;
	uint32_t y = ((uint32_t)b->to << 16) | b->to_port;
	return (x > y) - (x < y);
}

static int by_channel(const void *left, const void *right)
{
	const struct lf_row *a = left, *b = right;
	return strcmp(a->channel, b->channel);
}

/* An input has one sender, and a channel one talker and one connection. */
static bool is_unique(struct lf_table *table, char *why, size_t why_size)
{
	qsort(table->rows, table->count, sizeof(*table->rows), by_channel);
	for (size_t i = 1; i < table->count; i++)
		if (by_channel(&table->rows[i - 1], &table->rows[i]) == 0) {
			snprintf(why, why_size, "two rows have the channel %s",
				 table->rows[i].channel);
			return false;
		}
	qsort(table->rows, table->count, sizeof(*table->rows), by_input);
	for (size_t i = 1; i < table->count; i++)
		if (by_input(&table->rows[i - 1], &table->rows[i]) == 0) {
			snprintf(why, why_size, "two rows have the port %u of federate %u",
				 table->rows[i].to_port, table->rows[i].to);
			return false;
		}
	return true;
}

static bool rows_of(struct part rest, struct lf_table *table, char *why, size_t why_size)
{
	bool begun = false;
	for (unsigned at = 1; rest.length > 0; at++) {
		struct part text = line(&rest);
		if (text.length == 0)
			continue;
		if (!begun) {
			begun = text.length == strlen(FIRST_LINE) &&
				memcmp(text.at, FIRST_LINE, text.length) == 0;
			if (!begun)
				break;
			continue;
		}
		if (table->count == LF_ROWS) {
			snprintf(why, why_size, "line %u: more than %d rows", at, LF_ROWS);
			return false;
		}
		const char *lacks = row_of(text, &table->rows[table->count]);
		if (lacks) {
			snprintf(why, why_size, "line %u: %s", at, lacks);
			return false;
		}
		table->count++;
	}
	if (!begun)
		snprintf(why, why_size, "its first line is not `%s`", FIRST_LINE);
	return begun && is_unique(table, why, why_size);
}

bool lf_table_parse(const char *text, size_t length, struct lf_table *table, char *why,
		    size_t why_size)
{
	*table = (struct lf_table){ 0 };
	if (length > LF_TABLE_OCTETS) {
		snprintf(why, why_size, "it has more than %d octets", LF_TABLE_OCTETS);
		return false;
	}
	table->rows = calloc(LF_ROWS, sizeof(*table->rows));
	if (!table->rows) {
		snprintf(why, why_size, "there is no memory for it");
		return false;
	}
	if (rows_of((struct part){ text, length }, table, why, why_size))
		return true;
	free(table->rows);
	*table = (struct lf_table){ 0 };
	return false;
}
