/* Reads `c` until the run is over, or does something odd that its argument names. */
#define _DEFAULT_SOURCE
#include "common.h"
#include <sys/socket.h>
#include <unistd.h>

static onbeat *run;
static onbeat_listener *in;
static uint64_t value;

static void close_at_exit(void)
{
	onbeat_listener_close(in);
	onbeat_close(run);
}

static void *return_at_once(void *argument)
{
	return argument;
}

/* Greets the run coordinator without the library, by the rules. */
static int greet(void)
{
	int door = atoi(getenv("ONBEAT_COORDINATOR")), s = -1;
	unsigned char hello[3] = { 1, 17, 0 }, begin[5] = { 15 }, reply[2048];
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(s))];
	struct iovec part = { reply, sizeof(reply) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1,
				  .msg_control = control, .msg_controllen = sizeof(control) };

	EXPECT(send(door, hello, sizeof(hello), 0) == sizeof(hello));
	EXPECT(recvmsg(door, &message, 0) > 0);
	EXPECT(CMSG_FIRSTHDR(&message) != NULL);
	memcpy(&s, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(s));
	EXPECT(send(s, begin, sizeof(begin), 0) == sizeof(begin));
	EXPECT(recv(s, reply, sizeof(reply), 0) > 0);
	return s;
}

/* Asks for ends that it cannot have, again and again, and never reads the answers. */
static void ask_without_listening(int s)
{
	static const unsigned char open[7] = { 2, 0, 8, 0, 0, 0, 'x' };

	for (int i = 0; i < 100000; i++)
		if (send(s, open, sizeof(open), MSG_NOSIGNAL) < 0)
			break;
	pause();
}

static void read_some(int messages)
{
	for (int i = 0; i < messages; i++)
		must(onbeat_read(in, &value, NULL));
}

int main(int count, char **arguments)
{
	const char *how = count > 1 ? arguments[1] : "";
	onbeat_thread *thread;
	int64_t now;

	if (strcmp(how, "deaf") == 0)
		ask_without_listening(greet());
	if (strcmp(how, "nonsense") == 0) {
		send(greet(), "\xff nonsense", 10, 0);
		pause();
	}
	if (strcmp(how, "hangs") == 0 && fork() == 0)
		execlp("sleep", "sleep", "1000", (char *)NULL);
	must(onbeat_open(&run));
	EXPECT(onbeat_open(&run) == ONBEAT_E_COORDINATOR);
	must(onbeat_listener_open(run, "c", strcmp(how, "wrong size") == 0 ? 4 : 8, &in));
	if (strcmp(how, "atexit") == 0)
		atexit(close_at_exit);
	must(onbeat_start(run));
	must(onbeat_start(run));

	if (strcmp(how, "far") == 0) {
		EXPECT(onbeat_read_timeout(in, &value, INT64_MAX, NULL) == ONBEAT_OK);
		must(onbeat_sleep_until(run, INT64_MIN, &now));
		EXPECT(now < 100 * PERIOD_NS);
		EXPECT(onbeat_sleep_until(run, INT64_MAX, NULL) == ONBEAT_STOPPED);
	} else if (strcmp(how, "work") == 0) {
		EXPECT(onbeat_work(run, INT64_MIN) == ONBEAT_OK);
		EXPECT(onbeat_work(run, INT64_MAX) == ONBEAT_STOPPED);
	} else if (strcmp(how, "early") == 0) {
		read_some(10);
	} else if (strcmp(how, "wait") == 0) {
		while (onbeat_read_wait(in, &value, NULL) == ONBEAT_OK)
			;
	} else if (strcmp(how, "dies") == 0) {
		read_some(100);
		abort();
	} else if (strcmp(how, "hangs") == 0) {
		read_some(100);
		for (volatile int i = 0;; i++)
			;
	} else if (strcmp(how, "ignores the end") == 0) {
		for (;;)
			onbeat_read(in, &value, NULL);
	} else if (strcmp(how, "livelock") == 0) {
		while (onbeat_try_read(in, &value, NULL) == ONBEAT_EMPTY)
			;
	} else if (strcmp(how, "sleepy") == 0) {
		/* Reads only when the run is over; the end is told again and again. */
		while (onbeat_sleep_until(run, INT64_MAX, NULL) == ONBEAT_OK)
			;
		while (onbeat_read(in, &value, NULL) == ONBEAT_OK)
			;
		EXPECT(onbeat_read(in, &value, NULL) == ONBEAT_STOPPED);
	} else if (strcmp(how, "leaves a thread") == 0) {
		must(onbeat_thread_create(run, return_at_once, NULL, &thread));
		return 0;
	} else if (strcmp(how, "many threads") == 0) {
		for (int i = 0; i < 5000; i++) {
			must(onbeat_thread_create(run, return_at_once, NULL, &thread));
			must(onbeat_thread_join(thread, NULL));
		}
	} else if (strcmp(how, "forks and dies") == 0) {
		if (fork() == 0) {
			sleep(1000);
			return 0;
		}
		must(onbeat_read(in, &value, NULL));
		abort();
	} else if (strcmp(how, "daemon") == 0) {
		if (fork() == 0) {
			setsid();
			if (fork() == 0)
				execlp("sleep", "sleep", "1000", (char *)NULL);
			return 0;
		}
	}

	while (strcmp(how, "early") != 0 && onbeat_read(in, &value, NULL) == ONBEAT_OK)
		;
	if (strcmp(how, "atexit") != 0)
		close_at_exit();
	return 0;
}
