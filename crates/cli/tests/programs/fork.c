/*
 * fork talk|listen: in the middle of its channel each forks a child that tries
 * everything with what its parent opened, closes it and exits. The parent's channel must not
 * notice: its messages stay in order, whole and counted.
 */
#define _DEFAULT_SOURCE
#include "common.h"
#include <sys/wait.h>
#include <unistd.h>

#define MIDDLE 50

static onbeat *run;
static onbeat_talker *out;
static onbeat_listener *in;
static uint64_t value;

static void *never(void *argument)
{
	expect(0, "a forked child made a thread of the run");
	return argument;
}

#define REFUSED(call) expect((call) == ONBEAT_E_FORKED, #call)

static void use_as_talker(void)
{
	onbeat_counters counters;
	int64_t at, error;

	REFUSED(onbeat_write(out, &value, &at));
	expect(strstr(onbeat_last_error(), "fork") != NULL, onbeat_last_error());
	REFUSED(onbeat_try_write(out, &value, &at));
	REFUSED(onbeat_write_wait(out, &value, &at, &error));
	REFUSED(onbeat_write_at(out, &value, 0, &at));
	REFUSED(onbeat_talker_counters(out, &counters));
	REFUSED(onbeat_talker_limit(out, 0));
}

static void use_as_listener(void)
{
	const onbeat_listener *ends[] = { in };
	onbeat_counters counters;
	onbeat_selector *selector;
	onbeat_message info;
	size_t index;
	int descriptor;

	REFUSED(onbeat_read(in, &value, &info));
	REFUSED(onbeat_try_read(in, &value, &info));
	REFUSED(onbeat_read_wait(in, &value, &info));
	REFUSED(onbeat_read_latest(in, &value, &info));
	REFUSED(onbeat_read_timeout(in, &value, 1000, &info));
	REFUSED(onbeat_select(run, ends, 1, 1000, &index));
	REFUSED(onbeat_listener_descriptor(in, &descriptor));
	REFUSED(onbeat_listener_counters(in, &counters));
	REFUSED(onbeat_listener_limit(in, 0));
	REFUSED(onbeat_selector_open(run, ends, 1, &selector));
}

static void child(void)
{
	onbeat_thread *thread;
	onbeat_talker *talker;
	int64_t now;

	REFUSED(onbeat_start(run));
	REFUSED(onbeat_reload_keys(run));
	REFUSED(onbeat_now(run, &now));
	REFUSED(onbeat_sleep_until(run, 0, NULL));
	REFUSED(onbeat_work(run, 1000));
	REFUSED(onbeat_talker_open(run, "c", 8, &talker));
	REFUSED(onbeat_thread_create(run, never, NULL, &thread));
	if (out)
		use_as_talker();
	if (in)
		use_as_listener();
	onbeat_talker_close(out);
	onbeat_listener_close(in);
	onbeat_close(run);
	exit(EXIT_SUCCESS);
}

static void fork_in_the_middle(void)
{
	int status;
	pid_t pid = fork();

	EXPECT(pid >= 0);
	if (pid == 0)
		child();
	EXPECT(waitpid(pid, &status, 0) == pid);
	expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child was content");
}

static void talk(void)
{
	onbeat_counters counters;

	while (onbeat_write(out, &value, NULL) == ONBEAT_OK)
		if (++value == MIDDLE)
			fork_in_the_middle();
	EXPECT(value > 2 * MIDDLE);
	must(onbeat_talker_counters(out, &counters));
	EXPECT(counters.sent == value);
}

static void listen_to(void)
{
	onbeat_counters counters;
	onbeat_message info;
	uint64_t count = 0;

	while (onbeat_read(in, &value, &info) == ONBEAT_OK) {
		EXPECT(value == count && info.gap == 0 && info.sequence == count);
		if (++count == MIDDLE)
			fork_in_the_middle();
	}
	EXPECT(count > 2 * MIDDLE);
	must(onbeat_listener_counters(in, &counters));
	EXPECT(counters.received == count && counters.lost == 0);
}

int main(int count, char **arguments)
{
	int talks = count > 1 && strcmp(arguments[1], "talk") == 0;

	must(onbeat_open(&run));
	must(talks ? onbeat_talker_open(run, "c", 8, &out) :
		     onbeat_listener_open(run, "c", 8, &in));
	must(onbeat_start(run));
	if (talks)
		talk();
	else
		listen_to();
	onbeat_talker_close(out);
	onbeat_listener_close(in);
	onbeat_close(run);
	return 0;
}
