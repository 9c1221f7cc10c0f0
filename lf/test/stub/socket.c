/*
 * socket.c: connections of the stand-in runtime: sockets.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "reactor_c.h"

#include "../../src/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

net_abstraction_t stub_net(int descriptor)
{
	socket_priv_t *net = malloc(sizeof(*net));
	assert(net);
	net->socket_descriptor = descriptor;
	return net;
}

/* Counts the types of what is read in pieces; there is one connection only. */
static void count_type(size_t num_bytes, const unsigned char *buffer)
{
	static unsigned pieces_left;
	if (pieces_left > 0) {
		pieces_left--;
		return;
	}
	assert(num_bytes == 1);
	stub_over_socket[buffer[0]]++;
	pieces_left = buffer[0] == MSG_TYPE_PORT_ABSENT ? 1 : 2;
}

int read_from_net_close_on_error(net_abstraction_t net, size_t num_bytes, unsigned char *buffer)
{
	socket_priv_t *socket = net;
	size_t done = 0;
	if (socket->socket_descriptor < 0)
		return -1;
	while (done < num_bytes) {
		ssize_t got = read(socket->socket_descriptor, buffer + done, num_bytes - done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			close(socket->socket_descriptor);
			socket->socket_descriptor = -1;
			return -1;
		}
		done += (size_t)got;
	}
	count_type(num_bytes, buffer);
	return 0;
}

void extract_timed_header(unsigned char *buffer, uint16_t *port, uint16_t *federate,
			  size_t *length, tag_t *tag)
{
	/* Written without wire.c, which it checks. */
	uint64_t time = 0;
	for (int i = 15; i >= 8; i--)
		time = time << 8 | buffer[i];
#ifdef STUB_BIG_ENDIAN
	*port = (uint16_t)(buffer[0] << 8 | buffer[1]);
#else
	*port = (uint16_t)(buffer[1] << 8 | buffer[0]);
#endif
	*federate = (uint16_t)(buffer[3] << 8 | buffer[2]);
	*length = (size_t)buffer[7] << 24 | (size_t)buffer[6] << 16 | (size_t)buffer[5] << 8 |
		  buffer[4];
	tag->time = (instant_t)time;
	tag->microstep = (microstep_t)((uint32_t)buffer[19] << 24 | (uint32_t)buffer[18] << 16 |
				       (uint32_t)buffer[17] << 8 | buffer[16]);
}
