/* Takes something from elsewhere than the library, in the run or, as `before` says, before it, or
 * nothing at all. Each way is a function of its own, so that its name is where the call is. Usage:
 * outside none|before|clock|wait|random|device|thread|fork|vfork|spawn|die|alone */
#define _GNU_SOURCE
#include "common.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static onbeat *run;

static void use_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
}

static void use_wait(void)
{
	struct timespec step = {.tv_nsec = 1};

	errno = EDOM;
	EXPECT(nanosleep(&step, NULL) == 0);
	EXPECT(errno == EDOM);
}

static void use_random(void)
{
	char octet;

	EXPECT(getrandom(&octet, 1, 0) == 1);
}

static void use_device(void)
{
	int device = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	int other = open("build/new", O_WRONLY | O_CREAT | O_TRUNC, 0640);

	EXPECT(device >= 0 && other >= 0);
	EXPECT(close(device) == 0 && close(other) == 0);
}

/* Neither a result nor the way in which it ends is lost. */
static void *end_at_once(void *argument)
{
	pthread_exit(argument);
}

static void use_thread(void)
{
	pthread_t thread;
	void *result = NULL;

	EXPECT(pthread_create(&thread, NULL, end_at_once, &run) == 0);
	EXPECT(pthread_join(thread, &result) == 0);
	EXPECT(result == &run);
}

static void *do_nothing(void *argument)
{
	return argument;
}

/* What everyone may do. */
static void use_own_thread(void)
{
	onbeat_thread *thread;
	void *result = NULL;

	must(onbeat_thread_create(run, do_nothing, &run, &thread));
	must(onbeat_thread_join(thread, &result));
	EXPECT(result == &run);
}

static void expect_end(pid_t child, int status)
{
	int found = -1;

	EXPECT(child > 0 && waitpid(child, &found, 0) == child);
	EXPECT(WIFEXITED(found) && WEXITSTATUS(found) == status);
}

static void use_fork(void)
{
	pid_t child = fork();

	if (child == 0) {
		use_clock(); /* not the run's process */
		_exit(5);
	}
	expect_end(child, 5);
}

static void use_vfork(void)
{
	pid_t child = vfork();

	if (child == 0)
		_exit(6);
	expect_end(child, 6);
}

static void use_spawn(void)
{
	char *words[] = {"sh", "-c", "exit 7", NULL};
	pid_t child;

	EXPECT(posix_spawnp(&child, "sh", NULL, NULL, words, environ) == 0);
	expect_end(child, 7);
}

static void use_clock_and_die(void)
{
	use_clock();
	raise(SIGKILL);
}

/* Nothing is preloaded, and nothing says so. */
static void expect_nothing(void)
{
	EXPECT(!getenv("ONBEAT_NOTICES") && !getenv("LD_PRELOAD"));
}

static const struct {
	const char *name;
	void (*use)(void);
} ways[] = {
	{"clock", use_clock},	{"wait", use_wait}, {"random", use_random}, {"device", use_device},
	{"thread", use_thread}, {"fork", use_fork}, {"vfork", use_vfork},   {"spawn", use_spawn},
	{"die", use_clock_and_die}, {"alone", expect_nothing},
};

int main(int argc, char **argv)
{
	uint64_t value = 0;
	onbeat_talker *out;

	EXPECT(argc == 2);
	if (strcmp(argv[1], "before") == 0)
		use_clock();
	must(onbeat_open(&run));
	must(onbeat_talker_open(run, "c", sizeof(value), &out));
	must(onbeat_start(run));
	use_own_thread();
	while (onbeat_sleep_until(run, (int64_t)(value + 1) * PERIOD_NS, NULL) == ONBEAT_OK) {
		for (size_t i = 0; value < 3 && i < sizeof(ways) / sizeof(ways[0]); i++) {
			if (strcmp(argv[1], ways[i].name) == 0)
				ways[i].use();
		}
		value++;
		if (onbeat_write(out, &value, NULL) == ONBEAT_STOPPED)
			break;
	}
	use_clock(); /* nothing can be written any more */
	onbeat_talker_close(out);
	onbeat_close(run);
	return 0;
}
