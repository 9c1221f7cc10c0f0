/*
 * Not a program: a library to be loaded before others. CLOCK_TAI of a machine that is a network
 * namespace is ahead by what the file says that `CLOCKS/` has of it, by the namespace's number.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *ahead;

__attribute__((constructor)) static void begin(void)
{
	const char *clocks = getenv("CLOCKS");
	struct stat machine;
	char path[4096];
	int file;
	void *at;

	if (!clocks || stat("/proc/self/ns/net", &machine))
		return;
	snprintf(path, sizeof(path), "%s/%lu", clocks, (unsigned long)machine.st_ino);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return;
	at = mmap(NULL, sizeof(*ahead), PROT_READ, MAP_SHARED, file, 0);
	if (at != MAP_FAILED)
		ahead = at;
	close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int failed = (int)syscall(SYS_clock_gettime, clock, now);
	int64_t ns;

	if (!failed && ahead && clock == CLOCK_TAI) {
		ns = now->tv_sec * INT64_C(1000000000) + now->tv_nsec + *ahead;
		now->tv_sec = ns / 1000000000;
		now->tv_nsec = ns % 1000000000;
	}
	return failed;
}
