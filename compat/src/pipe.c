/*
 * pipe.c: a channel behind a descriptor, as the first generation gave it to programs. Each write is
 * a message and each read gets one: the descriptor keeps their bounds.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "internal.h"

struct nc_pipe {
	int fd;
	bool sends;
	unsigned sending;  /* the thread has more to send */
	pthread_t thread;
	struct cb_priv cbp;
};

static void *send_all(void *argument)
{
	struct channel *ch = argument;
	struct nc_pipe *pipe = ch->end->pipe;
	unsigned char message[NC_PAYLOAD_MAX + 1];
	ssize_t size;
	while ((size = recv(pipe->fd, message, sizeof(message), 0)) > 0) {
		if (size != ch->payload_size) {
			ERROR(ch, "%zd octets written where messages have %u: not sent", size,
			      ch->payload_size);
			continue;
		}
		if (chan_send_now(ch, message) < 0)
			break;
	}
	__atomic_store_n(&pipe->sending, 0, __ATOMIC_SEQ_CST);
	return NULL;
}

static bool start(struct channel *ch)
{
	struct nc_pipe *pipe = ch->end->pipe;
	if (pipe->sends) {
		pipe->sending = 1;
		return pthread_create(&pipe->thread, NULL, send_all, ch) == 0;
	}
	/* A program that does not read loses messages; it must not hold up the thread. */
	if (fcntl(pipe->fd, F_SETFL, O_NONBLOCK) != 0)
		return false;
	pipe->cbp = (struct cb_priv){.sz = ch->payload_size, .fd = pipe->fd};
	return nh_reg_callback(ch->nh, ch->sidw.s64, &pipe->cbp, nh_std_cb) == 0;
}

int nc_pipe_open(struct channel *ch)
{
	int fds[2];
	struct nc_pipe *pipe = calloc(1, sizeof(*pipe));
	if (!pipe || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
		free(pipe);
		return -1;
	}
	pipe->fd = fds[0];
	pipe->sends = ch->end->talker != NULL;
	ch->end->pipe = pipe;
	if (start(ch))
		return fds[1];
	ERROR(ch, "no thread for its descriptor: %s", strerror(errno));
	nc_callback_forget(ch->nh, &pipe->cbp);
	ch->end->pipe = NULL;
	close(fds[0]);
	close(fds[1]);
	free(pipe);
	return -1;
}

void nc_pipe_drain(struct channel *ch)
{
	struct nc_pipe *pipe = ch->end->pipe;
	if (!pipe || !pipe->sends)
		return;
	/* What is in it is still received, then its end. */
	shutdown(pipe->fd, SHUT_RD);
	if (!nc_await_zero(&pipe->sending))
		WARN(ch, "not all that was written into its descriptor was sent in a second: the rest "
			 "is lost");
}

void nc_pipe_close(struct channel *ch)
{
	struct nc_pipe *pipe = ch->end->pipe;
	if (!pipe)
		return;
	if (pipe->sends)
		pthread_join(pipe->thread, NULL);
	else
		nc_callback_forget(ch->nh, &pipe->cbp);
	ch->end->pipe = NULL;
	close(pipe->fd);
	free(pipe);
}
