/* Greets the fabric by the rules and then talks nonsense. */
#include "common.h"
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

int main(void)
{
	const char *fabric = getenv("ONBEAT_FABRIC");
	const char *colon = strrchr(fabric, ':');
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	unsigned char hello[24] = { 1, 1, 0 }, reply[2048];
	size_t length = (size_t)(colon - fabric);
	int s = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	memcpy(address.sun_path + 1, fabric, length);
	for (int i = 0; i < 16; i++) {
		unsigned octet;

		sscanf(colon + 1 + 2 * i, "%2x", &octet);
		hello[3 + i] = (unsigned char)octet;
	}
	expect(connect(s, (struct sockaddr *)&address,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) == 0,
	       "connects");
	expect(send(s, hello, sizeof(hello), 0) == sizeof(hello), "greets");
	expect(recv(s, reply, sizeof(reply), 0) > 0, "is let in");
	send(s, "\xff nonsense", 10, 0);
	recv(s, reply, sizeof(reply), 0);
	return 0;
}
