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
	pthread_t thread;
	struct cb_priv cbp;
};

static void *send_all(void *argument)
{
	struct channel *ch = argument;
	unsigned char message[NC_PAYLOAD_MAX + 1];
	ssize_t size;
	while ((size = recv(ch->end->pipe->fd, message, sizeof(message), 0)) > 0) {
		if (size != ch->payload_size) {
			ERROR(ch, "%zd octets written where messages have %u: not sent", size,
			      ch->payload_size);
			continue;
		}
		if (chan_send_now(ch, message) < 0)
			break;
	}
	return NULL;
}

static bool start(struct channel *ch)
{
	struct nc_pipe *pipe = ch->end->pipe;
	if (pipe->sends)
		return pthread_create(&pipe->thread, NULL, send_all, ch) == 0;
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
	ch->end->pipe = NULL;
	close(fds[0]);
	close(fds[1]);
	free(pipe);
	return -1;
}

void nc_pipe_close(struct channel *ch)
{
	struct nc_pipe *pipe = ch->end->pipe;
	if (!pipe)
		return;
	if (pipe->sends) {
		/* What is in it is still received, then its end. */
		shutdown(pipe->fd, SHUT_RD);
		pthread_join(pipe->thread, NULL);
	} else {
		chan_stop(ch);
		nc_service_stop(ch);
		nc_callback_forget(ch->nh, &pipe->cbp);
	}
	ch->end->pipe = NULL;
	close(pipe->fd);
	free(pipe);
}
