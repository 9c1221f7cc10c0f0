/*
 * forge talk|listen: the talker's program sends frames of channel `c` that its talker did not
 * write, on the socket that the library has on the host's interface: some say that they were
 * captured 0.9 s from now, some come from another station. The listener's program waits for
 * messages and must neither be given one of them nor wait for what they say. It writes into
 * forged.log how many were rejected of each kind, and the longest wait.
 */
#define _DEFAULT_SOURCE
#include "common.h"
#include <arpa/inet.h>
#include <inttypes.h>
#include <linux/if_packet.h>
#include <sys/socket.h>

#define FORGED 0xdeadbeefu
/* Of so many messages one is followed by a forged one of each kind. */
#define EVERY 20
#define FUTURE_NS (900 * 1000 * 1000)

static onbeat *run;

/* The packet socket of the program's talker. */
static int socket_of_the_talker(struct sockaddr_ll *address)
{
	for (int fd = 3; fd < 1024; fd++) {
		socklen_t length = sizeof(*address);

		memset(address, 0, sizeof(*address));
		if (getsockname(fd, (struct sockaddr *)address, &length) == 0 &&
		    address->sll_family == AF_PACKET)
			return fd;
	}
	expect(0, "a talker in a namespace has a packet socket");
	return -1;
}

/* A frame as docs/channels.md has it, from station `source`, the talker's start `instance`. */
static void forge(int fd, const unsigned char *source, unsigned char instance, int64_t capture_ns)
{
	static unsigned char number;
	unsigned char frame[64] = { 1, 0, 0x5e, 0, 0, 1 };
	uint32_t timestamp = htonl((uint32_t)capture_ns), forged = FORGED;
	unsigned char *unit = frame + 18;

	memcpy(frame + 6, source, 6);
	memcpy(frame + 12, "\x81\x00\x60\x02\x22\xf0", 6); /* priority 3, VLAN 2, IEEE 1722 */
	memcpy(unit, "\x7f\x81", 2);
	unit[2] = number++;
	unit[11] = 1; /* the stream */
	memcpy(unit + 12, &timestamp, 4);
	unit[21] = 8;
	unit[22] = instance;
	memcpy(unit + 24, &forged, sizeof(forged));
	EXPECT(send(fd, frame, sizeof(frame), 0) == sizeof(frame));
}

static void talk(onbeat_talker *out)
{
	static const unsigned char elsewhere[6] = { 2, 0, 0, 0, 0x0b, 0xad };
	struct sockaddr_ll own;
	int fd = socket_of_the_talker(&own);
	int64_t now;

	for (uint64_t k = 0; onbeat_write(out, &k, NULL) == ONBEAT_OK; k++) {
		if (k % EVERY != EVERY - 1)
			continue;
		must(onbeat_now(run, &now));
		forge(fd, own.sll_addr, 1, now + FUTURE_NS);
		forge(fd, elsewhere, 99, now);
	}
}

static void listen_to(onbeat_listener *in)
{
	FILE *log = fopen("forged.log", "w");
	int64_t before, after, longest = 0;
	onbeat_counters counters;
	uint64_t value, next = 0;

	EXPECT(log != NULL);
	must(onbeat_now(run, &before));
	while (onbeat_read_wait(in, &value, NULL) == ONBEAT_OK) {
		EXPECT(value == next++);
		must(onbeat_now(run, &after));
		if (after - before > longest)
			longest = after - before;
		before = after;
	}
	must(onbeat_listener_counters(in, &counters));
	fprintf(log, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 "\n", counters.rejected_future,
		counters.rejected_talker, counters.lost, longest);
	fclose(log);
}

int main(int count, char **arguments)
{
	onbeat_listener *in = NULL;
	onbeat_talker *out = NULL;
	int talks = count > 1 && strcmp(arguments[1], "talk") == 0;

	must(onbeat_open(&run));
	must(talks ? onbeat_talker_open(run, "c", 8, &out) :
		     onbeat_listener_open(run, "c", 8, &in));
	must(onbeat_start(run));
	if (talks)
		talk(out);
	else
		listen_to(in);
	onbeat_talker_close(out);
	onbeat_listener_close(in);
	onbeat_close(run);
	return 0;
}
