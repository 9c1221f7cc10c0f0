/*
 * peer.h: what a federate reads of another one: messages of channels and of the socket, one after
 * the other, as if all had come over the socket.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include "internal.h"

struct peer;

/* What comes from a federate; ends the program when there is no memory. */
struct peer *lf_peer_new(uint16_t federate);
/* Adds a channel that comes from it. */
void lf_peer_add(struct peer *peer, const struct lf_row *row, onbeat_listener *end);
/*
 * Reads `octets` of what comes from it: 0, or -1 when the socket is closed. The runtime reads a
 * message in pieces: its type, the rest of its header, its payload. Any other way to read it is
 * that of an unknown runtime, and ends the program.
 */
int lf_peer_read(struct peer *peer, void *net, size_t octets, unsigned char *buffer);
/* Prints what its channels have counted. */
void lf_peer_print(struct peer *peer, int me);

/* Of the caller: the descriptor of a socket, below 0 when it is closed; reading it; the end. */
int lf_socket_of(void *net);
int lf_read_socket(void *net, size_t octets, unsigned char *buffer);
void lf_run_is_over(void);
