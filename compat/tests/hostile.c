/*
 * Sends messages 1 to 100 of the channel mcast42 as frames of its own making, each twice, among
 * frames that no program may ever see: truncated, foreign, of a wrong type, of a wrong length.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HEADER 14
#define STREAM 24
#define SIZE 16
#define FRAME (HEADER + STREAM + SIZE)

static struct sockaddr_ll address;
static int sock;

static int put(const unsigned char *frame, size_t size)
{
	return sendto(sock, frame, size, 0, (struct sockaddr *)&address, sizeof(address)) ==
	       (ssize_t)size;
}

static void make(unsigned char frame[FRAME], uint64_t number)
{
	static const unsigned char head[HEADER + 4] = {
		0x01, 0x00, 0x5E, 0x01, 0x11, 0x42, 2, 0, 0, 0, 0, 9, 0x22, 0xF0, 0x7F, 0x81,
	};
	struct timespec now;
	clock_gettime(CLOCK_TAI, &now);
	uint32_t stamp = htonl((uint32_t)((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec));
	uint64_t stream = htobe64(42), values[2] = {3 * number + 1, number};
	uint16_t length = htons(SIZE);
	memset(frame, 0, FRAME);
	memcpy(frame, head, sizeof(head));
	frame[16] = (unsigned char)number;
	memcpy(frame + 18, &stream, 8);
	memcpy(frame + 26, &stamp, 4);
	memcpy(frame + 34, &length, 2);
	memcpy(frame + 38, values, SIZE);
}

/* A copy with one octet changed; its values say what they are not. */
static int wrong(const unsigned char *frame, size_t at, unsigned char octet, size_t size)
{
	unsigned char copy[FRAME + 64] = {0};
	memcpy(copy, frame, FRAME);
	copy[at] = octet;
	memset(copy + 38, 0xEE, SIZE);
	return put(copy, size);
}

static int torment(const unsigned char *frame)
{
	return wrong(frame, 25, 43, FRAME) &&   /* another stream */
	       wrong(frame, 18, 1, FRAME) &&    /* another stream, in its first octet */
	       wrong(frame, 13, 0xF1, FRAME) && /* another EtherType */
	       wrong(frame, 14, 0x02, FRAME) && /* another subtype */
	       wrong(frame, 15, 0x91, FRAME) && /* another version */
	       wrong(frame, 15, 0x01, FRAME) && /* no stream id */
	       wrong(frame, 35, 8, FRAME) &&    /* a shorter message */
	       wrong(frame, 35, 17, FRAME + 64) && /* a longer one */
	       wrong(frame, 34, 0xFF, FRAME) && /* longer than the frame */
	       wrong(frame, 35, SIZE, FRAME - 1) && /* truncated in the message */
	       wrong(frame, 35, SIZE, HEADER + 10) && /* truncated in the header */
	       wrong(frame, 35, SIZE, HEADER); /* nothing at all */
}

int main(int argc, char *argv[])
{
	if (argc != 2)
		return 1;
	sock = socket(AF_PACKET, SOCK_RAW, 0);
	address = (struct sockaddr_ll){.sll_family = AF_PACKET,
				       .sll_ifindex = (int)if_nametoindex(argv[1]),
				       .sll_halen = 6};
	if (sock < 0 || !address.sll_ifindex)
		return 2;
	unsigned char frame[FRAME];
	for (uint64_t i = 1; i <= 100; i++) {
		make(frame, i);
		if (!torment(frame) || !put(frame, FRAME) || !put(frame, FRAME) || !torment(frame))
			return 3;
		usleep(10000);
	}
	make(frame, UINT64_MAX);
	return put(frame, FRAME) ? 0 : 4;
}
