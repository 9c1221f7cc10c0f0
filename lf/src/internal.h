/*
 * internal.h: what the sources of lf/ share.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include <onbeat.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Octets of the header that a tagged message has between federates. */
#define LF_HEADER 21
/* Octets of a message that says that a port is absent: no length, no payload. */
#define LF_ABSENT 17
/* Octets of a channel's message at most. */
#define LF_MESSAGE_MAX 1476
/* Octets of a payload below a header at most. */
#define LF_PAYLOAD_MAX (LF_MESSAGE_MAX - LF_HEADER)
/* Octets of a channel's name, with the final 0. */
#define LF_NAME 32

/* Types of messages between federates, as this reactor-c numbers them. */
enum lf_type {
	/* On a physical connection: 8 octets of header follow the type, then the payload. */
	LF_TYPE_PHYSICAL = 17,
	/* With a tag: 20 octets follow the type, then the payload. */
	LF_TYPE_TAGGED = 18,
	/* A port is absent at a tag: 16 octets follow the type. */
	LF_TYPE_ABSENT = 23,
};

/* --- wire.c: the header of a tagged message, little-endian ---------------------------------- */

struct lf_header {
	uint8_t type;
	uint16_t port;
	uint16_t federate;
	uint32_t length;
	int64_t time;
	uint32_t microstep;
};

void lf_encode(const struct lf_header *header, unsigned char out[LF_HEADER]);
void lf_decode(const unsigned char in[LF_HEADER], struct lf_header *header);
/* The 16 and 32 bits at `in`. */
uint16_t lf_decode16(const unsigned char *in);
uint32_t lf_decode32(const unsigned char *in);

/* --- table.c: which connection is on which channel ------------------------------------------ */

/* Rows and octets of a table at most. */
#define LF_ROWS 4096
#define LF_TABLE_OCTETS (1 << 20)

/* A connection that is on a channel. lf/README.md has the format of the table. */
struct lf_row {
	/* The sending and the receiving federate, and the receiving port, as lfc numbers them. */
	uint16_t from;
	uint16_t to;
	uint16_t to_port;
	char channel[LF_NAME];
	/* Octets of a payload at most. */
	uint32_t octets;
	/* The channel's fixed delay. */
	int64_t delay_ns;
};

struct lf_table {
	size_t count;
	/* From malloc; NULL when there is none. */
	struct lf_row *rows;
};

/*
 * Reads a table of `length` octets. False when it is wrong; `why` gets a text of one line then,
 * and `table` has no rows. Free `table->rows`.
 */
bool lf_table_parse(const char *text, size_t length, struct lf_table *table, char *why,
		    size_t why_size);

/* --- member.c: the program's membership in a run, and its clock ------------------------------ */

/* Prints `onbeat_lf: ` and a line on standard error, and ends the program. */
_Noreturn void lf_fatal(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Executes `task` on the thread that joined the run, and waits until it is done. The runtime's own
 * threads are not of the run: they may send and receive, but not open ends or create threads.
 */
void lf_member_do(void (*task)(void *), void *argument);
/* The same without waiting for its end; it waits for the end of a task that was given before. */
void lf_member_begin_with(void (*task)(void *), void *argument);
/*
 * After the start, on a thread of the runtime: ends the program in a run in virtual time, where no
 * thread may call that is not of the run.
 */
void lf_member_check(void);
/* The program's membership; NULL before the first task. */
onbeat *lf_member_context(void);
/* Opens an end, or ends the program. On the member's thread. */
onbeat_talker *lf_open_talker(const char *channel, size_t octets);
onbeat_listener *lf_open_listener(const char *channel, size_t octets);
/* Ends set-up, or ends the program; false when the run is over. On the member's thread. */
bool lf_member_start(void);
/* Creates a thread of the run, or ends the program. On the member's thread, after the start. */
void lf_member_thread(onbeat_thread_body body, void *argument);

/* --- reactor_c.c: the check of the reactor runtime ------------------------------------------- */

/* Ends the program unless the linked reactor-c is one that this was written for. */
void lf_check_reactor_c(void);
