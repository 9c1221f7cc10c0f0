/*
 * A load on the processors and on the disk, as the paper's parallel compilation is one (Austad et
 * al. 2023, section 5.2.1: 32 threads on 4 cores that read, compute and write): so many processes
 * each compute over a buffer, write it into a file that is removed at once, and read it back. It
 * needs nothing of Onbeat and ends when it is killed. SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 *     load [PROCESSES]        32 by default
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define OCTETS (1 << 20)

/* Sorts and mixes a buffer as no compiler can foresee. */
static uint64_t compute(uint64_t *words, size_t count, uint64_t seed)
{
	for (size_t pass = 0; pass < 16; pass++)
		for (size_t at = 0; at < count; at++) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			words[seed % count] += words[at] ^ seed;
		}
	return seed;
}

static void worker(uint64_t seed)
{
	static uint64_t words[OCTETS / sizeof(uint64_t)];
	FILE *file = tmpfile();

	for (;;) {
		seed = compute(words, OCTETS / sizeof(uint64_t), seed);
		/* Where no file may be written, it is a load on the processors only. */
		if (!file)
			continue;
		rewind(file);
		if (fwrite(words, 1, OCTETS, file) != OCTETS || fflush(file) != 0)
			continue;
		fdatasync(fileno(file));
		rewind(file);
		if (fread(words, 1, OCTETS, file) != OCTETS)
			clearerr(file);
	}
}

int main(int argc, char **argv)
{
	long processes = argc > 1 ? strtol(argv[1], NULL, 10) : 32;
	pid_t parent = getpid();

	if (processes < 1 || processes > 1024) {
		fprintf(stderr, "load: from 1 to 1024 processes, not `%s`\n", argv[1]);
		return 2;
	}
	for (long number = 1; number <= processes; number++) {
		pid_t child = fork();

		if (child < 0) {
			perror("load: fork");
			return 1;
		}
		if (child > 0)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			return 0;
		worker((uint64_t)number);
	}
	while (wait(NULL) > 0)
		;
	return 0;
}
