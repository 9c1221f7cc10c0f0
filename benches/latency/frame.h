/*
 * A socket and a frame of bare AF_PACKET, for the contestants that write their frames by hand.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#pragma once

#include "bench.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>

#define FRAME_ETHERTYPE 0x22f0

/* As sent. What is received has lost its tag: the kernel takes it off. */
struct frame {
	uint8_t destination[6], source[6], tag[4], ethertype[2];
	struct bench_message message;
} __attribute__((packed));

struct received {
	uint8_t destination[6], source[6], ethertype[2];
	struct bench_message message;
} __attribute__((packed));

static const struct frame frame_template = {
	.destination = { 0x91, 0xe0, 0xf0, 0x00, 0x0e, 0x01 },
	.source = { 0x02, 0x00, 0x00, 0x00, 0x00, 0x01 },
	.tag = { 0x81, 0x00, 0x60, 0x02 }, /* priority 3, VLAN 2 */
	.ethertype = { FRAME_ETHERTYPE >> 8, FRAME_ETHERTYPE & 0xff },
};

/* Bound to the interface; receives the EtherType if `listens`, else nothing. */
static inline int frame_socket(bool listens)
{
	int fd = socket(AF_PACKET, SOCK_RAW, 0);
	struct sockaddr_ll here = {
		.sll_family = AF_PACKET,
		.sll_protocol = listens ? htons(FRAME_ETHERTYPE) : 0,
		.sll_ifindex = (int)if_nametoindex(BENCH_INTERFACE),
	};
	struct packet_mreq group = { .mr_ifindex = here.sll_ifindex,
				     .mr_type = PACKET_MR_MULTICAST, .mr_alen = 6 };
	int room = 1 << 21;

	memcpy(group.mr_address, frame_template.destination, 6);
	if (fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof here))
		bench_fail("AF_PACKET");
	if (listens && setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &group, sizeof group))
		bench_fail("PACKET_ADD_MEMBERSHIP");
	/* As much room as Onbeat asks for: flat out, no program shall lose messages for want of it. */
	if (listens && setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room))
		bench_fail("SO_RCVBUFFORCE");
	return fd;
}
