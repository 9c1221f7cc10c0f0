/* What the kernel takes for a round trip between processes that share a processor: by futex or by a
 * pair of sequenced-packet sockets. With several processes one after the other has its turn.
 * Prints nanoseconds. Usage: peer futex|socket ROUNDS PROCESSES */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST 1024
#define OCTETS 64

struct place {
	_Atomic uint32_t word;
	char line[60];
};
static struct place *asked, *answered;
static int ends[MOST][2];

static void await(struct place *place, uint32_t old)
{
	while (atomic_load(&place->word) == old)
		syscall(SYS_futex, &place->word, FUTEX_WAIT, old, NULL, NULL, 0);
}

static void post(struct place *place)
{
	atomic_fetch_add(&place->word, 1);
	syscall(SYS_futex, &place->word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void serve(int number, int is_futex)
{
	char packet[OCTETS];

	for (uint32_t round = 0;; round++) {
		if (is_futex) {
			await(&asked[number], round);
			post(answered);
		} else if (recv(ends[number][1], packet, OCTETS, 0) <= 0 ||
			   send(ends[number][1], packet, OCTETS, MSG_NOSIGNAL) < 0) {
			_exit(0);
		}
	}
}

static void ask(int number, int is_futex)
{
	char packet[OCTETS] = { 0 };
	uint32_t before = atomic_load(&answered->word);

	if (is_futex) {
		post(&asked[number]);
		await(answered, before);
	} else if (send(ends[number][0], packet, OCTETS, 0) < 0 ||
		   recv(ends[number][0], packet, OCTETS, 0) <= 0) {
		exit(EXIT_FAILURE);
	}
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int main(int argc, char **argv)
{
	int is_futex = argc == 4 && strcmp(argv[1], "futex") == 0;
	int rounds = argc == 4 ? atoi(argv[2]) : 0, processes = argc == 4 ? atoi(argv[3]) : 0;
	pid_t children[MOST];
	cpu_set_t one;
	int64_t began;

	if (rounds < 1 || processes < 1 || processes > MOST)
		return EXIT_FAILURE;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	asked = mmap(NULL, (MOST + 1) * sizeof(*asked), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	answered = asked + MOST;
	for (int i = 0; i < processes; i++) {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends[i]))
			return EXIT_FAILURE;
		children[i] = fork();
		if (children[i] == 0)
			serve(i, is_futex);
	}
	for (int i = 0; i < processes; i++)
		ask(i, is_futex);
	began = now_ns();
	for (int i = 0; i < rounds; i++)
		ask(i % processes, is_futex);
	printf("%lld\n", (long long)((now_ns() - began) / rounds));
	for (int i = 0; i < processes; i++)
		kill(children[i], 9);
	return EXIT_SUCCESS;
}
