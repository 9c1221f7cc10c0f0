/*
 * Plain UDP over IPv4, connected sockets, blocking.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "../bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>

static int udp_socket(int (*attach)(int, const struct sockaddr *, socklen_t))
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(BENCH_PORT) };

	inet_pton(AF_INET, BENCH_LISTENER, &address.sin_addr);
	if (fd < 0 || attach(fd, (struct sockaddr *)&address, sizeof address))
		bench_fail("UDP");
	return fd;
}

void bench_talker(const char *variant)
{
	struct bench_message message = { 0 };
	int fd = udp_socket(connect);

	(void)variant;
	while (bench_next(&message))
		if (send(fd, &message, sizeof message, 0) < 0 && errno != ENOBUFS)
			bench_fail("send");
}

void bench_listener(const char *variant)
{
	struct bench_message message;
	int fd = udp_socket(bind);
	int room = 1 << 21; /* as in frame.h */

	(void)variant;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room))
		bench_fail("SO_RCVBUFFORCE");
	bench_ready();
	while (recv(fd, &message, sizeof message, 0) == sizeof message)
		bench_arrived(&message);
	bench_fail("recv");
}
