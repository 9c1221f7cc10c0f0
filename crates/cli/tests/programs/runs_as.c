/* Does what its first argument names, and then what a listener of `c` does.
 *
 *   says FILE      writes to FILE as whom it runs
 *   scheduled FILE appends to FILE how it is scheduled, and on how many CPUs
 *   hides FILE     leaves a process with a session of its own, whose number is in FILE
 *   many           starts processes until no more can be had, and says how many there were
 *   much           uses memory until it is killed, or has 1 GiB
 *   root           becomes whom its file lets it become, and waits for ever
 */
#define _GNU_SOURCE
#include "common.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value ? value : "-";
}

static void say(const char *path)
{
	struct rlimit memory, priority;
	int open = 0;
	FILE *file;

	for (int i = 3; i < 1000; i++)
		open += fcntl(i, F_GETFD) >= 0;
	file = fopen(path, "w");
	EXPECT(file != NULL);
	getrlimit(RLIMIT_MEMLOCK, &memory);
	getrlimit(RLIMIT_RTPRIO, &priority);
	fprintf(file, "uid %u %u gid %u %u groups %d new %d session %d open %d\n", getuid(), geteuid(),
		getgid(), getegid(), getgroups(0, NULL), prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0),
		getsid(0) == getpid(), open);
	fprintf(file, "home %s user %s logname %s runtime %s\n", variable("HOME"),
		variable("USER"), variable("LOGNAME"), variable("XDG_RUNTIME_DIR"));
	fprintf(file, "memlock %d rtprio %d policy %d\n", memory.rlim_cur == RLIM_INFINITY,
		(int)priority.rlim_cur, sched_getscheduler(0));
	fclose(file);
}

static void scheduled(const char *path)
{
	FILE *file = fopen(path, "a");
	struct sched_param parameters;
	cpu_set_t cpus;

	EXPECT(file != NULL && sched_getparam(0, &parameters) == 0);
	EXPECT(sched_getaffinity(0, sizeof(cpus), &cpus) == 0);
	fprintf(file, "policy %d priority %d cpus %d\n", sched_getscheduler(0),
		parameters.sched_priority, CPU_COUNT(&cpus));
	fclose(file);
}

static void hide(const char *path)
{
	int written[2];
	char octet;

	EXPECT(pipe2(written, O_CLOEXEC) == 0);
	if (fork() == 0) {
		FILE *file;

		setsid();
		if (fork() != 0)
			_exit(0);
		file = fopen(path, "w");
		fprintf(file, "%d\n", getpid());
		fclose(file);
		execlp("sleep", "sleep", "1000", (char *)NULL);
	}
	close(written[1]);
	/* Until the other end is closed: it is executed. */
	EXPECT(read(written[0], &octet, 1) == 0);
}

static void start_many(void)
{
	int count = 0;

	for (; count < 1000; count++) {
		pid_t child = fork();

		if (child == 0) {
			setsid();
			pause();
		}
		if (child < 0)
			break;
	}
	fprintf(stderr, "started %d, then %s\n", count, strerror(errno));
}

static void use_much(void)
{
	/* As much as no test's limit allows, and as any machine has. */
	for (int i = 0; i < 1024; i++) {
		void *more = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

		EXPECT(more != MAP_FAILED);
	}
}

int main(int count, char **words)
{
	const char *how = count > 1 ? words[1] : "";
	onbeat_listener *in;
	uint64_t value;
	onbeat *run;

	if (strcmp(how, "says") == 0)
		say(words[2]);
	if (strcmp(how, "scheduled") == 0)
		scheduled(words[2]);
	if (strcmp(how, "hides") == 0)
		hide(words[2]);
	if (strcmp(how, "many") == 0)
		start_many();
	if (strcmp(how, "much") == 0)
		use_much();
	if (strcmp(how, "root") == 0) {
		EXPECT(setgid(0) == 0 && setuid(0) == 0);
		for (;;)
			pause();
	}
	must(onbeat_open(&run));
	must(onbeat_listener_open(run, "c", 8, &in));
	must(onbeat_start(run));
	while (onbeat_read(in, &value, NULL) == ONBEAT_OK)
		;
	onbeat_listener_close(in);
	onbeat_close(run);
	return 0;
}
