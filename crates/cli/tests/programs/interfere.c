/* An unprivileged user beside a tune of the superuser's: what such a user may try. Each attempt
 * says on a line of its own how it ended: `refused`, `SUCCEEDED` if it should not have, or `done`
 * if anybody may do that, and it must not matter.
 *
 *   interfere try ROOT PID...      every attempt once
 *   interfere run WHAT...          the same at a run: its processes, directories and cgroups
 *   interfere flood PID            connections to whatever sockets that run has, until it is killed
 *   interfere squat MEMORY COUNT   names, memory and load, until it is killed
 *   interfere hold MEMORY COUNT    memory only
 *   interfere lock PATH...         these locks, until it is killed
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define SPINNERS 4
#define SOCKETS 200

static char state[3000];

/* A path in the state directory, in one of a few buffers. */
static const char *in_state(const char *name)
{
	static char paths[4][4096];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof paths[0], "%s/%s", state, name);
	return path;
}

static void said(const char *what, const char *on, bool succeeded)
{
	printf("%s %s: %s\n", what, on, succeeded ? "SUCCEEDED" : "refused");
}

static bool locks(const char *path, int flags)
{
	int file = open(path, flags | O_NONBLOCK);

	/* It keeps the lock, if it has it, until it ends. */
	return file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0;
}

static bool writes(const char *path, int flags, const char *text)
{
	int file = open(path, flags | O_WRONLY | O_NONBLOCK, 0666);
	bool written = file >= 0 && write(file, text, strlen(text)) > 0;

	if (file >= 0)
		close(file);
	return written;
}

static bool reads(const char *path)
{
	char octet;
	int file = open(path, O_RDONLY | O_NONBLOCK);
	bool got = file >= 0 && read(file, &octet, 1) >= 0;

	if (file >= 0)
		close(file);
	return got;
}

static void try_files(void)
{
	static const char *const names[] = { "tune.lock", "tune.journal", "tune.guard",
					     "tune.holder", "tune.holder.lock", "tune.last" };
	char away[4096];

	said("lock", "the directory", locks(state, O_RDONLY | O_DIRECTORY));
	said("list", "the directory", reads(state) || open(state, O_RDONLY | O_DIRECTORY) >= 0);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const char *path = in_state(names[i]);

		said("lock for reading", names[i], locks(path, O_RDONLY));
		said("lock for writing", names[i], locks(path, O_RDWR));
		said("read", names[i], reads(path));
		said("append to", names[i], writes(path, O_APPEND, "\"confirmed\"\n"));
		said("truncate", names[i], truncate(path, 0) == 0);
		said("remove", names[i], unlink(path) == 0);
		said("make", names[i], writes(path, O_CREAT | O_EXCL, "x"));
		said("open to all", names[i], chmod(path, 0666) == 0);
		said("take", names[i], chown(path, getuid(), getgid()) == 0);
		said("rename", names[i], rename(path, in_state("x")) == 0);
		snprintf(away, sizeof away, "/tmp/onbeat-interfere-%d", getpid());
		said("link from elsewhere", names[i], link(path, away) == 0);
		said("put a link in place of", names[i], symlink("/etc/passwd", path) == 0);
		said("put a pipe in place of", names[i], mkfifo(path, 0666) == 0);
	}
	snprintf(away, sizeof away, "%s-away", state);
	said("rename", "the directory", rename(state, away) == 0);
	said("open to all", "the directory", chmod(state, 0777) == 0);
	said("remove", "the directory", rmdir(state) == 0);
	said("make a file in", "the directory", writes(in_state("y"), O_CREAT, "x"));
	said("watch", "the directory", inotify_add_watch(inotify_init1(0), state, IN_OPEN) >= 0);
}

static void try_process(pid_t pid)
{
	static const int signals[] = { SIGCONT, SIGHUP, SIGINT,	 SIGTSTP, SIGSTOP,
				       SIGTERM, SIGKILL, SIGUSR1, SIGWINCH };
	struct rlimit limit = { 3, 3 };
	struct sched_param parameters = { 0 };
	char of[32], path[64];
	cpu_set_t one;
	int descriptor = (int)syscall(SYS_pidfd_open, pid, 0);

	snprintf(of, sizeof of, "%d", pid);
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
		said("signal", of, kill(pid, signals[i]) == 0);
		said("signal by descriptor", of,
		     syscall(SYS_pidfd_send_signal, descriptor, signals[i], NULL, 0) == 0);
	}
	said("signal the group of", of, kill(-pid, SIGTERM) == 0);
	said("take a descriptor of", of, syscall(SYS_pidfd_getfd, descriptor, 1, 0) >= 0);
	said("trace", of, ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0);
	snprintf(path, sizeof path, "/proc/%d/mem", pid);
	said("write the memory of", of, open(path, O_RDWR) >= 0);
	snprintf(path, sizeof path, "/proc/%d/environ", pid);
	said("read the environment of", of, reads(path));
	snprintf(path, sizeof path, "/proc/%d/oom_score_adj", pid);
	said("offer to the memory killer", of, writes(path, 0, "1000\n"));
	said("limit", of, prlimit(pid, RLIMIT_NOFILE, &limit, NULL) == 0);
	said("lower", of, setpriority(PRIO_PROCESS, (id_t)pid, 19) == 0);
	said("schedule", of, sched_setscheduler(pid, SCHED_IDLE, &parameters) == 0);
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	said("bind", of, sched_setaffinity(pid, sizeof one, &one) == 0);
}

/* What can be tried at a file that everybody may read. */
static void try_file(const char *path)
{
	char away[4096];

	said("write", path, writes(path, O_APPEND, "x"));
	said("truncate", path, truncate(path, 0) == 0);
	said("open to all", path, chmod(path, 0777) == 0);
	said("take", path, chown(path, getuid(), getgid()) == 0);
	snprintf(away, sizeof away, "%s-away", path);
	said("rename", path, rename(path, away) == 0);
	said("remove", path, unlink(path) == 0 || rmdir(path) == 0);
	/* Anybody may, and keeps it until it ends. */
	printf("lock %s: %s\n", path, locks(path, O_RDONLY) ? "done" : "refused");
}

/* A directory of the run's, and what is in it. */
static void try_directory(const char *path)
{
	static const char *const new[] = { "go", "out", "results.json", "out.partial-1" };
	DIR *directory = opendir(path);
	struct dirent *entry;
	char name[4096], away[4200];

	try_file(path);
	for (size_t i = 0; i < sizeof new / sizeof *new; i++) {
		snprintf(name, sizeof name, "%s/%s", path, new[i]);
		said("make", name, mkdir(name, 0777) == 0);
		said("make a file", name, writes(name, O_CREAT | O_EXCL, "x"));
	}
	while (directory && (entry = readdir(directory))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
		try_file(name);
		snprintf(away, sizeof away, "%s-away", name);
		said("put a link beside", name, symlink("/etc/passwd", away) == 0);
	}
}

/* A cgroup of the run's. */
static void try_cgroup(const char *path)
{
	static const char *const files[] = { "cgroup.procs", "cgroup.kill", "cgroup.freeze",
					     "cgroup.threads", "tasks", "pids.max", "memory.max",
					     "memory.limit_in_bytes", "cgroup.subtree_control" };
	char name[4096];

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		snprintf(name, sizeof name, "%s/%s", path, files[i]);
		said("write", name, writes(name, 0, "1"));
	}
	snprintf(name, sizeof name, "%s/x", path);
	said("make", name, mkdir(name, 0777) == 0);
	said("remove", path, rmdir(path) == 0);
}

/* Connects to each socket with a name that starts with this; how many there were. */
static int connect_to(const char *start)
{
	FILE *list = fopen("/proc/net/unix", "r");
	char line[512];
	int count = 0;

	while (list && fgets(line, sizeof line, list)) {
		struct sockaddr_un name = { .sun_family = AF_UNIX };
		char *found = strstr(line, start);
		socklen_t length;
		int end;

		if (!found)
			continue;
		found[strcspn(found, "\n")] = '\0';
		length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(found));
		snprintf(name.sun_path, sizeof name.sun_path, "%s", found);
		name.sun_path[0] = '\0';
		end = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
		if (connect(end, (struct sockaddr *)&name, length) == 0)
			count++;
		close(end);
	}
	if (list)
		fclose(list);
	return count;
}

/* A process of the run's: more than at one of which only the number is known. */
static void try_member(const char *number)
{
	char path[64], sockets[32];

	try_process((pid_t)atoi(number));
	for (int i = 0; i < 12; i++) {
		snprintf(path, sizeof path, "/proc/%s/fd/%d", number, i);
		said("open", path, open(path, O_RDONLY | O_NONBLOCK) >= 0);
	}
	snprintf(sockets, sizeof sockets, "@onbeat-%s-", number);
	said("connect to", sockets, connect_to(sockets) > 0);
}

static void try_run(const char *what)
{
	if (what[0] != '/')
		try_member(what);
	else if (strncmp(what, "/sys/", 5) == 0)
		try_cgroup(what);
	else
		try_directory(what);
}

static void flood(const char *number)
{
	char sockets[32];

	snprintf(sockets, sizeof sockets, "@onbeat-%s-", number);
	for (int i = 0; i < SPINNERS; i++) {
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				connect_to(sockets);
		}
	}
	printf("flood: done\nready\n");
	fflush(stdout);
	for (;;)
		pause();
}

/* Names that anybody may take: of processes, of sockets, and in directories of everybody's. */
static void take_names(void)
{
	static const char *const files[] = { "/tmp/onbeat-%d", "/tmp/onbeat-measure-%d",
					     "/dev/shm/onbeat-%d" };
	static const char *const processes[] = { "onbeat", "irq/24-eth0-rx", "napi/eth0-1" };
	char path[100];
	int old = open("/run/onbeat-cpu-dma-latency", O_RDONLY | O_NONBLOCK);

	if (old >= 0)
		flock(old, LOCK_SH | LOCK_NB);
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		snprintf(path, sizeof path, files[i], getpid());
		if (symlink("/etc/passwd", path) == 0)
			unlink(path);
	}
	for (int i = 0; i < SOCKETS; i++) {
		struct sockaddr_un name = { .sun_family = AF_UNIX };
		int end = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

		snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "onbeat-%d", i);
		bind(end, (struct sockaddr *)&name, sizeof name);
		listen(end, 1);
	}
	for (size_t i = 0; i < sizeof processes / sizeof *processes; i++) {
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			prctl(PR_SET_NAME, processes[i]);
			for (;;)
				pause();
		}
	}
	printf("take names: done\n");
}

/* Memory that looks as a program's counters do, of every kind that it should not be. */
static void take_memory(const char *name, int count)
{
	static char text[1 << 22];
	int file = open(name, O_RDONLY);
	ssize_t length = file < 0 ? -1 : read(file, text, sizeof text);

	for (int i = 0; i < count && length > 0; i++) {
		int memory = memfd_create("onbeat-records", MFD_ALLOW_SEALING);

		if (write(memory, text, (size_t)length) != length)
			printf("memory: too little\n");
		if (i % 4 != 3)
			fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK);
		if (i % 4 == 2)
			fchmod(memory, 0);
		if (i % 4 == 1)
			mmap(NULL, 4096, PROT_READ, MAP_SHARED, memory, 0);
	}
	/* Its files are not to be told from the superuser's by whom their directory belongs to. */
	prctl(PR_SET_DUMPABLE, 0);
	printf("take memory: done\n");
}

static void load_processors(void)
{
	for (int i = 0; i < SPINNERS; i++) {
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				syscall(SYS_getppid);
		}
	}
	printf("load processors: done\n");
}

int main(int count, char **words)
{
	/* A stranger has a session of its own; in one session SIGCONT is for everybody (kill(2)). */
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (count >= 3 && strcmp(words[1], "try") == 0) {
		snprintf(state, sizeof state, "%s/var/lib/onbeat", words[2]);
		try_files();
		for (int i = 3; i < count; i++)
			try_process((pid_t)atoi(words[i]));
		return 0;
	}
	for (int i = 2; i < count && strcmp(words[1], "run") == 0; i++)
		try_run(words[i]);
	if (count >= 3 && strcmp(words[1], "run") == 0)
		return 0;
	if (count == 3 && strcmp(words[1], "flood") == 0)
		flood(words[2]);
	if (count >= 3 && strcmp(words[1], "lock") == 0) {
		for (int i = 2; i < count; i++)
			printf("lock %s: %s\n", words[i], locks(words[i], O_RDONLY) ? "done" : "no");
		printf("ready\n");
		fflush(stdout);
		for (;;)
			pause();
	}
	if (count == 4) {
		bool all = strcmp(words[1], "squat") == 0;

		take_memory(words[2], atoi(words[3]));
		if (all)
			take_names();
		if (all)
			load_processors();
		printf("ready\n");
		fflush(stdout);
		for (;;)
			pause();
	}
	return 2;
}
