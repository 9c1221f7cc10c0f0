/*
 * What a channel end takes: opens that many listeners of the longest messages, and says by how much
 * the program and the kernel have grown, in octets; and how long it takes to close them, beside as
 * many plain sockets that are closed in a row, in nanoseconds.
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include <arpa/inet.h>
#include <onbeat.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST 4096
#define SIZE 1476

static onbeat_channel channels[MOST];
static char names[MOST][16];
static onbeat_listener *listeners[MOST];

static void good(onbeat_status status)
{
	if (status != ONBEAT_OK) {
		fprintf(stderr, "%s\n", onbeat_last_error());
		exit(1);
	}
}

/* Pages in memory, shared ones too. */
static long program_octets(void)
{
	long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (!file || fscanf(file, "%*d %ld", &pages) != 1)
		exit(1);
	fclose(file);
	return pages * sysconf(_SC_PAGESIZE);
}

/* What the whole kernel has for itself and cannot give back: sockets, their filters, files. */
static long kernel_octets(void)
{
	long sum = 0, kib;
	char line[128];
	FILE *file = fopen("/proc/meminfo", "r");

	if (!file)
		exit(1);
	while (fgets(line, sizeof line, file))
		if (sscanf(line, "SUnreclaim: %ld", &kib) == 1 ||
		    sscanf(line, "VmallocUsed: %ld", &kib) == 1 ||
		    sscanf(line, "Percpu: %ld", &kib) == 1)
			sum += kib;
	fclose(file);
	return sum * 1024;
}

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* How long it takes to close that many sockets of the kind that a listener has. */
static long long close_plain(int count)
{
	static int sockets[MOST];

	for (int i = 0; i < count; i++) {
		sockets[i] = socket(AF_PACKET, SOCK_RAW, htons(0x22f0));
		if (sockets[i] < 0)
			exit(1);
	}
	long long begin = now_ns();
	for (int i = 0; i < count; i++)
		close(sockets[i]);
	return now_ns() - begin;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 0;
	onbeat_interface interface = { .name = "veth0" };
	struct rlimit files;
	onbeat *context;

	if (count < 1 || count > MOST)
		return 2;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	for (int i = 0; i < count; i++) {
		snprintf(names[i], sizeof names[i], "c%d", i);
		channels[i] = (onbeat_channel){
			.name = names[i],
			.destination = { 0x91, 0xe0, 0xf0, 0x00, i >> 8, i },
			.stream_id = UINT64_C(0x0200000000020000) + i,
			.size = SIZE,
			.interval_ns = 1000000,
		};
	}
	/* The first touches what all share: code and the C library's own. */
	kernel_octets();
	long program = program_octets(), kernel = kernel_octets();
	good(onbeat_open_interface(&interface, channels, count, &context));
	for (int i = 0; i < count; i++)
		good(onbeat_listener_open(context, names[i], SIZE, &listeners[i]));
	program = program_octets() - program;
	kernel = kernel_octets() - kernel;
	long long begin = now_ns();
	for (int i = 0; i < count; i++)
		onbeat_listener_close(listeners[i]);
	onbeat_close(context);
	long long took = now_ns() - begin;
	printf("{\"channels\": %d, \"user\": %ld, \"kernel\": %ld, "
	       "\"close_ns\": %lld, \"close_plain_ns\": %lld}\n",
	       count, program, kernel, took, close_plain(count));
	return 0;
}
