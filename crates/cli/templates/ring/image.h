/* What the PLC and the remote I/O share: the process image. */
#pragma once
#include <onbeat.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CYCLE_NS (1000 * 1000)

/* Bits of the inputs. */
#define BARRIER 1u /* a part interrupts the light barrier */
#define RETRACTED 2u /* the pusher is at its rear stop */

/* Bits of the outputs. */
#define PUSH 1u

/* The message of channels `inputs` and `outputs`. */
struct image {
	int64_t cycle; /* of the inputs; outputs repeat the one that they answer */
	uint32_t bits;
	uint32_t reserved;
};

/* Ends the program with a message when a call failed. */
static inline void must(enum onbeat_status status, const char *what)
{
	if (status != ONBEAT_OK) {
		fprintf(stderr, "%s: %s\n", what, onbeat_last_error());
		exit(EXIT_FAILURE);
	}
}
