/*
 * calls.c: how each function is called that an abort has to wait for. Under CALL stand the names of
 * the functions that the statements behind it call; `me` is 0 in the task that is aborted, 1 in the
 * other one. What is not made for two threads is not called by the other one.
 */
#define _GNU_SOURCE
#include <aio.h>
#include <argz.h>
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <envz.h>
#include <err.h>
#include <error.h>
#include <execinfo.h>
#include <fcntl.h>
#include <fmtmsg.h>
#include <fnmatch.h>
#include <fstab.h>
#include <fts.h>
#include <ftw.h>
#include <getopt.h>
#include <glob.h>
#include <grp.h>
#include <gshadow.h>
#include <iconv.h>
#include <ifaddrs.h>
#include <langinfo.h>
#include <libintl.h>
#include <link.h>
#include <locale.h>
#include <malloc.h>
#include <mntent.h>
#include <monetary.h>
#include <mqueue.h>
#include <net/if.h>
#include <netdb.h>
#include <nl_types.h>
#include <obstack.h>
#include <printf.h>
#include <pthread.h>
#include <pwd.h>
#include <regex.h>
#include <resolv.h>
#include <search.h>
#include <semaphore.h>
#include <shadow.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <syslog.h>
#include <threads.h>
#include <time.h>
#include <uchar.h>
#include <unistd.h>
#include <utmp.h>
#include <wchar.h>
#include <wordexp.h>

#define COUNT_MAX 512

typedef void call(int me);
static struct {
	const char *names;
	call *make;
} calls[COUNT_MAX];
static int call_count;

static void call_add(const char *names, call *make)
{
	calls[call_count].names = names;
	calls[call_count++].make = make;
}

int call_find(const char *name)
{
	size_t length = strlen(name);

	for (int i = 0; i < call_count; i++)
		for (const char *at = calls[i].names; (at = strstr(at, name)); at += length)
			if ((at == calls[i].names || at[-1] == ' ') && strchr(" ", at[length]))
				return i;
	_exit(3);
}

void call_make(int which, int me)
{
	calls[which].make(me);
}

#define JOINED(a, b) a##b
#define JOIN(a, b) JOINED(a, b)
#define CALL(names) \
	static call JOIN(call_, __LINE__); \
	__attribute__((constructor)) static void JOIN(add_, __LINE__)(void) \
	{ \
		call_add(names, JOIN(call_, __LINE__)); \
	} \
	static void JOIN(call_, __LINE__)(__attribute__((unused)) int me)

/* What both tasks have, and what each has of its own. */
static FILE *null, *zero, *lines, *wide_null, *wide_zero, *wide_lines;
static FILE *nulls[2], *zeros[2], *wide_nulls[2], *wide_zeros[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spinlock;
static pthread_barrier_t barrier;
static pthread_key_t key;
static pthread_t idle;
static mtx_t mtx;
static cnd_t cnd;
static tss_t tss;
static sem_t semaphore;
static struct timespec long_ago;
static volatile int sink;
static volatile unsigned added;
#define USE(...) ((void)(0, __VA_ARGS__))
#define SHORT 64

static void *be_idle(void *argument)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	for (;;)
		pause();
	return argument;
}

void call_prepare(void)
{
	FILE *file = fopen("lines", "w");

	fputs("one 1\ntwo 2\n", file);
	fclose(file);
	null = fopen("/dev/null", "w");
	zero = fopen("/dev/zero", "r");
	lines = fopen("lines", "r");
	wide_null = fopen("/dev/null", "w");
	wide_zero = fopen("/dev/zero", "r");
	wide_lines = fopen("lines", "r");
	for (int i = 0; i < 2; i++) {
		nulls[i] = fopen("/dev/null", "w");
		zeros[i] = fopen("/dev/zero", "r");
		wide_nulls[i] = fopen("/dev/null", "w");
		wide_zeros[i] = fopen("/dev/zero", "r");
	}
	pthread_spin_init(&spinlock, 0);
	pthread_barrier_init(&barrier, NULL, 1);
	pthread_key_create(&key, NULL);
	pthread_create(&idle, NULL, be_idle, NULL);
	mtx_init(&mtx, mtx_timed);
	cnd_init(&cnd);
	tss_create(&tss, NULL);
	sem_init(&semaphore, 0, 0);
}

#define LISTED(name, parameters, last, ...) \
	static void name parameters \
	{ \
		va_list list; \
		va_start(list, last); \
		USE(__VA_ARGS__); \
		va_end(list); \
	}

/* --- memory ----------------------------------------------------------------------------------- */

CALL("malloc free") { char *m = malloc(100); if (m) *m = 1; free(m); }
CALL("calloc") { free(calloc(3, 50)); }
CALL("realloc") { free(realloc(malloc(10), 2000)); }
CALL("reallocarray") { free(reallocarray(malloc(10), 20, 100)); }
CALL("aligned_alloc") { free(aligned_alloc(64, 128)); }
CALL("memalign") { free(memalign(64, 100)); }
CALL("valloc") { free(valloc(100)); }
CALL("pvalloc") { free(pvalloc(100)); }
CALL("posix_memalign") { void *m; if (!posix_memalign(&m, 64, 100)) free(m); }
CALL("strdup") { free(strdup("a text")); }
extern char *__strdup(const char *text);
CALL("__strdup") { free(__strdup("a text")); }
CALL("strndup") { free(strndup("a text", 3)); }
CALL("wcsdup") { free(wcsdup(L"a text")); }
CALL("mallinfo2") { sink = (int)mallinfo2().arena; }
CALL("malloc_stats") { malloc_stats(); }
CALL("malloc_trim") { free(malloc(100000)); malloc_trim(0); }
CALL("mallopt") { mallopt(M_MMAP_MAX, 65536); }
CALL("malloc_info") { malloc_info(0, null); }

/* --- locks ------------------------------------------------------------------------------------ */

CALL("pthread_mutex_lock pthread_mutex_unlock")
{
	pthread_mutex_lock(&mutex);
	sink++;
	pthread_mutex_unlock(&mutex);
}
#define CLOCK CLOCK_MONOTONIC
#define UNLOCK pthread_mutex_unlock(&mutex)
#define RW_UNLOCK pthread_rwlock_unlock(&rwlock)
CALL("pthread_mutex_trylock") { if (!pthread_mutex_trylock(&mutex)) UNLOCK; }
CALL("pthread_mutex_timedlock") { if (!pthread_mutex_timedlock(&mutex, &long_ago)) UNLOCK; }
CALL("pthread_mutex_clocklock") { if (!pthread_mutex_clocklock(&mutex, CLOCK, &long_ago)) UNLOCK; }
CALL("pthread_rwlock_rdlock pthread_rwlock_unlock")
{
	pthread_rwlock_rdlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
}
CALL("pthread_rwlock_tryrdlock") { if (!pthread_rwlock_tryrdlock(&rwlock)) RW_UNLOCK; }
CALL("pthread_rwlock_timedrdlock")
{
	if (!pthread_rwlock_timedrdlock(&rwlock, &long_ago)) RW_UNLOCK;
}
CALL("pthread_rwlock_clockrdlock")
{
	if (!pthread_rwlock_clockrdlock(&rwlock, CLOCK, &long_ago)) RW_UNLOCK;
}
CALL("pthread_rwlock_wrlock") { pthread_rwlock_wrlock(&rwlock); RW_UNLOCK; }
CALL("pthread_rwlock_trywrlock") { if (!pthread_rwlock_trywrlock(&rwlock)) RW_UNLOCK; }
CALL("pthread_rwlock_timedwrlock")
{
	if (!pthread_rwlock_timedwrlock(&rwlock, &long_ago)) RW_UNLOCK;
}
CALL("pthread_rwlock_clockwrlock")
{
	if (!pthread_rwlock_clockwrlock(&rwlock, CLOCK, &long_ago)) RW_UNLOCK;
}
CALL("pthread_spin_lock pthread_spin_unlock")
{
	pthread_spin_lock(&spinlock);
	pthread_spin_unlock(&spinlock);
}
CALL("pthread_spin_trylock")
{
	if (!pthread_spin_trylock(&spinlock)) pthread_spin_unlock(&spinlock);
}
CALL("pthread_cond_wait") {
	pthread_mutex_lock(&mutex);
	if (me)
		pthread_cond_broadcast(&condition);
	else
		pthread_cond_wait(&condition, &mutex);
	pthread_mutex_unlock(&mutex);
}
CALL("pthread_cond_timedwait")
{
	pthread_mutex_lock(&mutex);
	pthread_cond_timedwait(&condition, &mutex, &long_ago);
	pthread_mutex_unlock(&mutex);
}
CALL("pthread_cond_clockwait")
{
	pthread_mutex_lock(&mutex);
	pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &long_ago);
	pthread_mutex_unlock(&mutex);
}
CALL("pthread_cond_signal") { pthread_cond_signal(&condition); }
CALL("pthread_cond_broadcast") { pthread_cond_broadcast(&condition); }
CALL("pthread_cond_destroy")
{
	pthread_cond_t own = PTHREAD_COND_INITIALIZER;
	pthread_cond_destroy(&own);
}
CALL("pthread_barrier_wait") { pthread_barrier_wait(&barrier); }
CALL("pthread_barrier_destroy")
{
	pthread_barrier_t own;
	pthread_barrier_init(&own, NULL, 1);
	pthread_barrier_destroy(&own);
}
static void nothing(void)
{
	sink++;
}
CALL("pthread_once")
{
	static pthread_once_t once[2];
	once[me] = PTHREAD_ONCE_INIT;
	pthread_once(&once[me], nothing);
}
CALL("pthread_join") { pthread_join(pthread_self(), NULL); }
CALL("pthread_detach") { pthread_detach(idle); }
CALL("pthread_cancel") { pthread_cancel(idle); }
CALL("pthread_kill") { pthread_kill(pthread_self(), 0); }
CALL("pthread_key_create")
{
	pthread_key_t own;
	if (!pthread_key_create(&own, NULL)) pthread_key_delete(own);
}
CALL("pthread_setspecific") { pthread_setspecific(key, &rwlock); }
CALL("pthread_getschedparam")
{
	int policy;
	struct sched_param p;
	pthread_getschedparam(idle, &policy, &p);
}
CALL("pthread_setschedparam")
{
	struct sched_param p = {0};
	pthread_setschedparam(idle, SCHED_OTHER, &p);
}
CALL("pthread_setschedprio") { pthread_setschedprio(idle, 0); }
CALL("pthread_getattr_np")
{
	pthread_attr_t a;
	if (!pthread_getattr_np(pthread_self(), &a)) pthread_attr_destroy(&a);
}
CALL("pthread_setname_np") { pthread_setname_np(idle, "idle"); }
CALL("pthread_getname_np") { char name[16]; pthread_getname_np(idle, name, 16); }
CALL("pthread_attr_setaffinity_np pthread_attr_destroy")
{
	pthread_attr_t a;
	cpu_set_t c;
	CPU_ZERO(&c);
	pthread_attr_init(&a);
	pthread_attr_setaffinity_np(&a, sizeof(c), &c);
	pthread_attr_destroy(&a);
}
CALL("pthread_getattr_default_np")
{
	pthread_attr_t a;
	if (!pthread_getattr_default_np(&a)) pthread_attr_destroy(&a);
}
CALL("pthread_mutex_init") { pthread_mutex_t own; pthread_mutex_init(&own, NULL); }
CALL("pthread_tryjoin_np") { pthread_tryjoin_np(idle, NULL); }
CALL("sem_post sem_wait") { sem_post(&semaphore); sem_wait(&semaphore); }
CALL("sem_trywait") { sem_trywait(&semaphore); }
CALL("sem_timedwait") { sem_timedwait(&semaphore, &long_ago); }
CALL("sem_clockwait") { sem_clockwait(&semaphore, CLOCK_MONOTONIC, &long_ago); }
CALL("sem_open sem_close sem_unlink")
{
	char name[32];
	sprintf(name, "/onbeat-abort-%d", getpid());
	sem_t *s = sem_open(name, O_CREAT, 0600, 0);
	if (s != SEM_FAILED) sem_close(s);
	sem_unlink(name);
}
CALL("mtx_lock mtx_unlock") { mtx_lock(&mtx); mtx_unlock(&mtx); }
CALL("mtx_trylock") { if (mtx_trylock(&mtx) == thrd_success) mtx_unlock(&mtx); }
CALL("mtx_timedlock") { if (mtx_timedlock(&mtx, &long_ago) == thrd_success) mtx_unlock(&mtx); }
CALL("mtx_init") { mtx_t own; mtx_init(&own, mtx_plain); mtx_destroy(&own); }
CALL("cnd_wait") {
	mtx_lock(&mtx);
	if (me)
		cnd_broadcast(&cnd);
	else
		cnd_wait(&cnd, &mtx);
	mtx_unlock(&mtx);
}
CALL("cnd_timedwait") { mtx_lock(&mtx); cnd_timedwait(&cnd, &mtx, &long_ago); mtx_unlock(&mtx); }
CALL("cnd_signal") { cnd_signal(&cnd); }
CALL("cnd_broadcast") { cnd_broadcast(&cnd); }
CALL("call_once")
{
	static once_flag once[2];
	once[me] = (once_flag)ONCE_FLAG_INIT;
	call_once(&once[me], nothing);
}
CALL("thrd_join") { thrd_join(thrd_current(), NULL); }
CALL("tss_create") { tss_t own; if (tss_create(&own, NULL) == thrd_success) tss_delete(own); }
CALL("tss_set") { tss_set(tss, &rwlock); }

/* --- streams ---------------------------------------------------------------------------------- */

#define CLOSE(...) FILE *f = __VA_ARGS__; if (f) fclose(f)
CALL("fopen fclose") { CLOSE(fopen("lines", "r")); }
CALL("fopen64") { CLOSE(fopen64("lines", "r")); }
CALL("fdopen") { CLOSE(fdopen(dup(0), "r")); }
CALL("tmpfile") { CLOSE(tmpfile()); }
CALL("tmpfile64") { CLOSE(tmpfile64()); }
CALL("popen pclose") { FILE *f = popen(":", "r"); if (f) pclose(f); }
CALL("fmemopen") { char m[8]; CLOSE(fmemopen(m, 8, "w")); }
CALL("open_memstream") { char *m = NULL; size_t n; CLOSE(open_memstream(&m, &n)); free(m); }
CALL("open_wmemstream") { wchar_t *m = NULL; size_t n; CLOSE(open_wmemstream(&m, &n)); free(m); }
CALL("fopencookie") { CLOSE(fopencookie(NULL, "w", (cookie_io_functions_t){0})); }
CALL("freopen") { nulls[me] = freopen("/dev/null", "w", nulls[me]); }
CALL("freopen64") { nulls[me] = freopen64("/dev/null", "w", nulls[me]); }
CALL("fflush") { fputc(1, null); fflush(null); fflush(NULL); }
CALL("fflush_unlocked") { fputc(1, nulls[me]); fflush_unlocked(nulls[me]); }
CALL("fcloseall") { fcloseall(); }
CALL("setvbuf") { setvbuf(null, NULL, _IOLBF, 0); }
CALL("setbuf") { setbuf(null, NULL); }
CALL("setbuffer") { setbuffer(null, NULL, 0); }
CALL("setlinebuf") { setlinebuf(null); }
CALL("fseek") { fseek(lines, 1, SEEK_SET); }
CALL("fseeko") { fseeko(lines, 1, SEEK_SET); }
CALL("fseeko64") { fseeko64(lines, 1, SEEK_SET); }
CALL("ftell") { USE(ftell(lines)); }
CALL("ftello") { USE(ftello(lines)); }
CALL("ftello64") { USE(ftello64(lines)); }
CALL("rewind") { rewind(lines); }
CALL("fgetpos fsetpos") { fpos_t p; fgetpos(lines, &p); fsetpos(lines, &p); }
CALL("fgetpos64 fsetpos64") { fpos64_t p; fgetpos64(lines, &p); fsetpos64(lines, &p); }
CALL("clearerr") { clearerr(null); }
CALL("feof") { USE(feof(null)); }
CALL("ferror") { USE(ferror(null)); }
CALL("perror") { perror("x"); }
CALL("flockfile funlockfile") { flockfile(null); sink++; funlockfile(null); }
CALL("ftrylockfile") { if (!ftrylockfile(null)) funlockfile(null); }
CALL("fgetc") { USE(fgetc(zero)); }
CALL("getc") { USE(getc(zero)); }
extern int _IO_getc(FILE *file);
extern int _IO_putc(int octet, FILE *file);
CALL("_IO_getc") { USE(_IO_getc(zero)); }
CALL("getchar") { USE(getchar()); }
CALL("fgetc_unlocked") { USE(fgetc_unlocked(zeros[me])); }
CALL("getc_unlocked") { USE((getc_unlocked)(zeros[me])); }
CALL("getchar_unlocked") { if (!me) USE((getchar_unlocked)()); }
CALL("__uflow") { USE(__uflow(zeros[me])); }
CALL("ungetc") { USE(ungetc('a', zero), getc(zero)); }
CALL("getw") { USE(getw(zero)); }
CALL("fgets") { char t[SHORT]; USE(fgets(t, SHORT, zero)); }
CALL("fgets_unlocked") { char t[SHORT]; USE(fgets_unlocked(t, SHORT, zeros[me])); }
extern char *__fgets_chk(char *text, size_t room, int size, FILE *file);
extern char *__fgets_unlocked_chk(char *text, size_t room, int size, FILE *file);
CALL("__fgets_chk") { char t[SHORT]; USE(__fgets_chk(t, SHORT, SHORT, zero)); }
CALL("__fgets_unlocked_chk")
{
	char t[SHORT];
	USE(__fgets_unlocked_chk(t, SHORT, SHORT, zeros[me]));
}
CALL("fputc") { fputc('a', null); }
CALL("putc") { putc('a', null); }
CALL("_IO_putc") { _IO_putc('a', null); }
CALL("putchar") { putchar('a'); }
CALL("fputc_unlocked") { fputc_unlocked('a', nulls[me]); }
CALL("putc_unlocked") { (putc_unlocked)('a', nulls[me]); }
CALL("putchar_unlocked") { if (!me) (putchar_unlocked)('a'); }
CALL("__overflow") { __overflow(nulls[me], 'a'); }
CALL("putw") { putw(1, null); }
CALL("fputs") { fputs("text", null); }
CALL("fputs_unlocked") { fputs_unlocked("text", nulls[me]); }
CALL("puts") { puts("text"); }
CALL("fread") { char t[SHORT]; USE(fread(t, 1, SHORT, zero)); }
CALL("fread_unlocked") { char t[SHORT]; USE(fread_unlocked(t, 1, SHORT, zeros[me])); }
extern size_t __fread_chk(void *into, size_t room, size_t size, size_t count, FILE *file);
extern size_t __fread_unlocked_chk(void *into, size_t room, size_t size, size_t count, FILE *file);
CALL("__fread_chk") { char t[SHORT]; USE(__fread_chk(t, SHORT, 1, SHORT, zero)); }
CALL("__fread_unlocked_chk")
{
	char t[SHORT];
	USE(__fread_unlocked_chk(t, SHORT, 1, SHORT, zeros[me]));
}
CALL("fwrite") { fwrite("text", 1, 4, null); }
CALL("fwrite_unlocked") { fwrite_unlocked("text", 1, 4, nulls[me]); }
CALL("fgetwc") { USE(fgetwc(wide_zero)); }
CALL("getwc") { USE(getwc(wide_zero)); }
CALL("getwchar") { USE(getwchar()); }
CALL("ungetwc") { USE(ungetwc(L'a', wide_zero), getwc(wide_zero)); }
CALL("fgetws") { wchar_t t[SHORT]; USE(fgetws(t, SHORT, wide_zero)); }
CALL("fputwc") { fputwc(L'a', wide_null); }
CALL("putwc") { putwc(L'a', wide_null); }
CALL("putwchar") { putwchar(L'a'); }
CALL("fputws") { fputws(L"text", wide_null); }
CALL("fwide") { fwide(wide_null, 0); }
CALL("fgetwc_unlocked") { USE(fgetwc_unlocked(wide_zeros[me])); }
CALL("getwc_unlocked") { USE(getwc_unlocked(wide_zeros[me])); }
CALL("fgetws_unlocked") { wchar_t t[SHORT]; USE(fgetws_unlocked(t, SHORT, wide_zeros[me])); }
CALL("fputwc_unlocked") { fputwc_unlocked(L'a', wide_nulls[me]); }
CALL("putwc_unlocked") { putwc_unlocked(L'a', wide_nulls[me]); }
CALL("fputws_unlocked") { fputws_unlocked(L"text", wide_nulls[me]); }
CALL("__fpurge") { __fpurge(nulls[me]); }
CALL("_flushlbf") { _flushlbf(); }
CALL("getline")
{
	char *l = NULL;
	size_t n = 0;
	rewind(lines);
	USE(getline(&l, &n, lines));
	free(l);
}
CALL("getdelim")
{
	char *l = NULL;
	size_t n = 0;
	rewind(lines);
	USE(getdelim(&l, &n, '\n', lines));
	free(l);
}
CALL("__getdelim")
{
	char *l = NULL;
	size_t n = 0;
	rewind(lines);
	USE(__getdelim(&l, &n, '\n', lines));
	free(l);
}

/* --- formatted -------------------------------------------------------------------------------- */

CALL("printf") { printf("%d", 1); }
CALL("fprintf") { fprintf(null, "%d %f", 1, 2.5); }
CALL("dprintf") { dprintf(1, "%d", 1); }
CALL("sprintf") { char t[SHORT]; sprintf(t, "%d", 1); }
CALL("snprintf") { char t[SHORT]; snprintf(t, SHORT, "%2000d", 1); }
CALL("asprintf") { char *t = NULL; if (asprintf(&t, "%d", 1) >= 0) free(t); }
LISTED(v1, (const char *format, ...), format, vprintf(format, list))
CALL("vprintf") { v1("%d", 1); }
LISTED(v2, (const char *format, ...), format, vfprintf(null, format, list))
CALL("vfprintf") { v2("%d", 1); }
LISTED(v3, (const char *format, ...), format, vdprintf(1, format, list))
CALL("vdprintf") { v3("%d", 1); }
LISTED(v4, (char *t, const char *format, ...), format, vsprintf(t, format, list))
CALL("vsprintf") { char t[SHORT]; v4(t, "%d", 1); }
LISTED(v5, (char *t, const char *format, ...), format, vsnprintf(t, SHORT, format, list))
CALL("vsnprintf") { char t[SHORT]; v5(t, "%d", 1); }
LISTED(v6, (char **t, const char *format, ...), format, vasprintf(t, format, list))
CALL("vasprintf") { char *t = NULL; v6(&t, "%d", 1); free(t); }
extern int __printf_chk(int, const char *, ...), __fprintf_chk(FILE *, int, const char *, ...);
extern int __dprintf_chk(int, int, const char *, ...), __sprintf_chk(char *, int, size_t,
	const char *, ...);
extern int __snprintf_chk(char *, size_t, int, size_t, const char *, ...);
extern int __asprintf_chk(char **, int, const char *, ...);
extern int __vprintf_chk(int, const char *, va_list), __vfprintf_chk(FILE *, int, const char *,
	va_list);
extern int __vdprintf_chk(int, int, const char *, va_list);
extern int __vsprintf_chk(char *, int, size_t, const char *, va_list);
extern int __vsnprintf_chk(char *, size_t, int, size_t, const char *, va_list);
extern int __vasprintf_chk(char **, int, const char *, va_list);
CALL("__printf_chk") { __printf_chk(1, "%d", 1); }
CALL("__fprintf_chk") { __fprintf_chk(null, 1, "%d", 1); }
CALL("__dprintf_chk") { __dprintf_chk(1, 1, "%d", 1); }
CALL("__sprintf_chk") { char t[SHORT]; __sprintf_chk(t, 1, SHORT, "%d", 1); }
CALL("__snprintf_chk") { char t[SHORT]; __snprintf_chk(t, SHORT, 1, SHORT, "%d", 1); }
CALL("__asprintf_chk") { char *t = NULL; if (__asprintf_chk(&t, 1, "%d", 1) >= 0) free(t); }
LISTED(c1, (const char *format, ...), format, __vprintf_chk(1, format, list))
CALL("__vprintf_chk") { c1("%d", 1); }
LISTED(c2, (const char *format, ...), format, __vfprintf_chk(null, 1, format, list))
CALL("__vfprintf_chk") { c2("%d", 1); }
LISTED(c3, (const char *format, ...), format, __vdprintf_chk(1, 1, format, list))
CALL("__vdprintf_chk") { c3("%d", 1); }
LISTED(c4, (char *t, const char *format, ...), format, __vsprintf_chk(t, 1, SHORT, format, list))
CALL("__vsprintf_chk") { char t[SHORT]; c4(t, "%d", 1); }
LISTED(c5, (char *t, const char *format, ...), format, __vsnprintf_chk(t, SHORT, 1, SHORT,
	format, list))
CALL("__vsnprintf_chk") { char t[SHORT]; c5(t, "%d", 1); }
LISTED(c6, (char **t, const char *format, ...), format, __vasprintf_chk(t, 1, format, list))
CALL("__vasprintf_chk") { char *t = NULL; c6(&t, "%d", 1); free(t); }

/* Headers give these names to others: the assembler's name is what the program is linked with. */
#define NAMED(name, symbol, ...) extern int name(__VA_ARGS__) __asm__(symbol)
NAMED(scan, "scanf", const char *, ...);
NAMED(scan_file, "fscanf", FILE *, const char *, ...);
NAMED(scan_text, "sscanf", const char *, const char *, ...);
NAMED(list_scan, "vscanf", const char *, va_list);
NAMED(list_scan_file, "vfscanf", FILE *, const char *, va_list);
NAMED(list_scan_text, "vsscanf", const char *, const char *, va_list);
NAMED(scan99, "__isoc99_scanf", const char *, ...);
NAMED(scan99_file, "__isoc99_fscanf", FILE *, const char *, ...);
NAMED(scan99_text, "__isoc99_sscanf", const char *, const char *, ...);
NAMED(list_scan99, "__isoc99_vscanf", const char *, va_list);
NAMED(list_scan99_file, "__isoc99_vfscanf", FILE *, const char *, va_list);
NAMED(list_scan99_text, "__isoc99_vsscanf", const char *, const char *, va_list);
CALL("scanf") { int i; USE(scan("%d", &i)); }
CALL("fscanf") { char i; USE(scan_file(zero, "%c", &i)); }
CALL("sscanf") { int i; USE(scan_text("1", "%d", &i)); }
LISTED(s1, (const char *format, ...), format, list_scan(format, list))
CALL("vscanf") { int i; s1("%d", &i); }
LISTED(s2, (const char *format, ...), format, list_scan_file(zero, format, list))
CALL("vfscanf") { char i; s2("%c", &i); }
LISTED(s3, (const char *format, ...), format, list_scan_text("1", format, list))
CALL("vsscanf") { int i; s3("%d", &i); }
CALL("__isoc99_scanf") { int i; USE(scan99("%d", &i)); }
CALL("__isoc99_fscanf") { char i; USE(scan99_file(zero, "%c", &i)); }
CALL("__isoc99_sscanf") { int i; USE(scan99_text("1", "%d", &i)); }
LISTED(s4, (const char *format, ...), format, list_scan99(format, list))
CALL("__isoc99_vscanf") { int i; s4("%d", &i); }
LISTED(s5, (const char *format, ...), format, list_scan99_file(zero, format, list))
CALL("__isoc99_vfscanf") { char i; s5("%c", &i); }
LISTED(s6, (const char *format, ...), format, list_scan99_text("1", format, list))
CALL("__isoc99_vsscanf") { int i; s6("%d", &i); }
#if __GLIBC_PREREQ(2, 38)
NAMED(scan23, "__isoc23_scanf", const char *, ...);
NAMED(scan23_file, "__isoc23_fscanf", FILE *, const char *, ...);
NAMED(scan23_text, "__isoc23_sscanf", const char *, const char *, ...);
NAMED(list_scan23, "__isoc23_vscanf", const char *, va_list);
NAMED(list_scan23_file, "__isoc23_vfscanf", FILE *, const char *, va_list);
NAMED(list_scan23_text, "__isoc23_vsscanf", const char *, const char *, va_list);
CALL("__isoc23_scanf") { int i; USE(scan23("%d", &i)); }
CALL("__isoc23_fscanf") { char i; USE(scan23_file(zero, "%c", &i)); }
CALL("__isoc23_sscanf") { int i; USE(scan23_text("1", "%d", &i)); }
LISTED(s7, (const char *format, ...), format, list_scan23(format, list))
CALL("__isoc23_vscanf") { int i; s7("%d", &i); }
LISTED(s8, (const char *format, ...), format, list_scan23_file(zero, format, list))
CALL("__isoc23_vfscanf") { char i; s8("%c", &i); }
LISTED(s9, (const char *format, ...), format, list_scan23_text("1", format, list))
CALL("__isoc23_vsscanf") { int i; s9("%d", &i); }
#endif

CALL("wprintf") { wprintf(L"%d", 1); }
CALL("fwprintf") { fwprintf(wide_null, L"%d", 1); }
CALL("swprintf") { wchar_t t[SHORT]; swprintf(t, SHORT, L"%d", 1); }
LISTED(w1, (const wchar_t *format, ...), format, vwprintf(format, list))
CALL("vwprintf") { w1(L"%d", 1); }
LISTED(w2, (const wchar_t *format, ...), format, vfwprintf(wide_null, format, list))
CALL("vfwprintf") { w2(L"%d", 1); }
LISTED(w3, (wchar_t *t, const wchar_t *format, ...), format, vswprintf(t, SHORT, format, list))
CALL("vswprintf") { wchar_t t[SHORT]; w3(t, L"%d", 1); }
extern int __wprintf_chk(int, const wchar_t *, ...), __fwprintf_chk(FILE *, int, const wchar_t *,
	...);
extern int __vwprintf_chk(int, const wchar_t *, va_list);
extern int __vfwprintf_chk(FILE *, int, const wchar_t *, va_list);
CALL("__wprintf_chk") { __wprintf_chk(1, L"%d", 1); }
CALL("__fwprintf_chk") { __fwprintf_chk(wide_null, 1, L"%d", 1); }
LISTED(w4, (const wchar_t *format, ...), format, __vwprintf_chk(1, format, list))
CALL("__vwprintf_chk") { w4(L"%d", 1); }
LISTED(w5, (const wchar_t *format, ...), format, __vfwprintf_chk(wide_null, 1, format, list))
CALL("__vfwprintf_chk") { w5(L"%d", 1); }
CALL("__isoc99_swscanf") { int i; USE(swscanf(L"1", L"%d", &i)); }
CALL("__isoc99_fwscanf") { wchar_t i; USE(fwscanf(wide_zero, L"%lc", &i)); }
CALL("strfmon") { char t[SHORT]; USE(strfmon(t, SHORT, "%n", 1.5)); }
CALL("strfromd") { char t[SHORT]; strfromd(t, SHORT, "%g", 1.5); }
#define obstack_chunk_alloc malloc
#define obstack_chunk_free free
CALL("obstack_printf")
{
	struct obstack o;
	obstack_init(&o);
	obstack_printf(&o, "%d", 1);
	obstack_free(&o, NULL);
}
CALL("gcvt") { char t[SHORT]; gcvt(1.5, 3, t); }
CALL("ecvt") { if (!me) USE(ecvt(1.5, 3, &(int){0}, &(int){0})); }
CALL("register_printf_modifier") { register_printf_modifier(L"qq"); }

/* --- the program, its environment ------------------------------------------------------------- */

CALL("atexit") { if (added++ < 100000) atexit(nothing); }
CALL("at_quick_exit") { if (added++ < 100000) at_quick_exit(nothing); }
static void nothing_with(int status, void *argument)
{
	sink = status + !argument;
}
CALL("on_exit") { if (added++ < 100000) on_exit(nothing_with, NULL); }
CALL("getenv") { USE(getenv("HOME")); }
CALL("secure_getenv") { USE(secure_getenv("HOME")); }
CALL("setenv") { setenv("ABORT", me ? "other" : "victim", 1); }
CALL("unsetenv") { setenv("ABORT", "x", 1); unsetenv("ABORT"); }
CALL("putenv") { static char text[] = "ABORT=x"; putenv(text); }
CALL("clearenv") { setenv("ABORT", "x", 1); clearenv(); }
CALL("system") { USE(system(":")); }
static char *arguments[] = {"true", NULL};
CALL("posix_spawn")
{
	pid_t id;
	if (!posix_spawn(&id, "/bin/true", NULL, NULL, arguments, NULL)) waitpid(id, NULL, 0);
}
CALL("posix_spawnp")
{
	pid_t id;
	if (!posix_spawnp(&id, "true", NULL, NULL, arguments, NULL)) waitpid(id, NULL, 0);
}
CALL("posix_spawn_file_actions_addclose posix_spawn_file_actions_destroy")
{
	posix_spawn_file_actions_t a;
	posix_spawn_file_actions_init(&a);
	posix_spawn_file_actions_addclose(&a, 5);
	posix_spawn_file_actions_destroy(&a);
}
CALL("getopt")
{
	char *words[] = {"a", "-b", NULL};
	if (!me) { optind = 0; USE(getopt(2, words, "b:")); }
}
CALL("raise") { raise(SIGCONT); }
CALL("fmtmsg") { fmtmsg(MM_PRINT, "a:b", MM_ERROR, "text", "action", "tag"); }

/* --- date and time ---------------------------------------------------------------------------- */

static const time_t at;
static const struct tm noon = {.tm_year = 100, .tm_mday = 1};
CALL("localtime") { USE(localtime(&at)); }
CALL("localtime_r") { struct tm d; localtime_r(&at, &d); }
CALL("gmtime") { USE(gmtime(&at)); }
CALL("gmtime_r") { struct tm d; gmtime_r(&at, &d); }
CALL("mktime") { struct tm d = noon; USE(mktime(&d)); }
CALL("timegm") { struct tm d = noon; USE(timegm(&d)); }
CALL("timelocal") { struct tm d = noon; USE(timelocal(&d)); }
CALL("asctime") { USE(asctime(&noon)); }
CALL("asctime_r") { char t[SHORT]; asctime_r(&noon, t); }
CALL("ctime") { USE(ctime(&at)); }
CALL("ctime_r") { char t[SHORT]; ctime_r(&at, t); }
CALL("strftime") { char t[SHORT]; strftime(t, SHORT, "%c %Z", &noon); }
CALL("wcsftime") { wchar_t t[SHORT]; wcsftime(t, SHORT, L"%c %Z", &noon); }
CALL("strptime") { struct tm d; USE(strptime("2000-01-01", "%F", &d)); }
CALL("getdate") { USE(getdate("12:00")); }
CALL("tzset") { tzset(); }
CALL("nanosleep") { struct timespec t = {0, 1000}; nanosleep(&t, NULL); }
CALL("usleep") { usleep(1); }
CALL("sleep") { sleep(0); }
CALL("timer_create timer_delete")
{
	timer_t t;
	struct sigevent e = {.sigev_notify = SIGEV_NONE};
	if (!timer_create(CLOCK_MONOTONIC, &e, &t)) timer_delete(t);
}

/* --- signals ---------------------------------------------------------------------------------- */

CALL("sigaction") { struct sigaction a; sigaction(SIGUSR1, NULL, &a); }
CALL("signal") { signal(SIGUSR1, SIG_IGN); }
extern void (*__sysv_signal(int number, void (*handler)(int)))(int);
CALL("__sysv_signal") { __sysv_signal(SIGUSR1, SIG_IGN); }
CALL("sigprocmask") { sigset_t s; sigemptyset(&s); sigprocmask(SIG_BLOCK, &s, NULL); }
CALL("pthread_sigmask") { sigset_t s; sigemptyset(&s); pthread_sigmask(SIG_BLOCK, &s, NULL); }
CALL("psignal") { psignal(SIGUSR1, "x"); }
CALL("psiginfo") { siginfo_t i = {.si_signo = SIGUSR1}; psiginfo(&i, "x"); }

/* --- numbers, sorting, tables ----------------------------------------------------------------- */

CALL("rand") { USE(rand()); }
CALL("srand") { srand(1); }
CALL("random") { USE(random()); }
CALL("srandom") { srandom(1); }
CALL("initstate setstate")
{
	static char state[2][64];
	if (!me) { USE(initstate(1, state[0], 64), setstate(state[0])); } else { USE(random()); }
}
#if __GLIBC_PREREQ(2, 36)
CALL("arc4random") { USE(arc4random()); }
CALL("arc4random_uniform") { USE(arc4random_uniform(10)); }
CALL("arc4random_buf") { char m[8]; arc4random_buf(m, 8); }
#endif
static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}
static int compare_with(const void *a, const void *b, void *more)
{
	USE(more);
	free(malloc(10));
	return compare(a, b);
}
CALL("qsort") { int a[400] = {5, 3, 9, 1}; qsort(a, 400, sizeof(*a), compare); }
CALL("qsort_r") { int a[400] = {5, 3, 9, 1}; qsort_r(a, 400, sizeof(*a), compare_with, NULL); }
static int one = 1;
static void leave(void *node)
{
	USE(node);
}
CALL("tsearch tdelete tdestroy")
{
	void *root = NULL;
	tsearch(&one, &root, compare);
	tdelete(&one, &root, compare);
	tsearch(&one, &root, compare);
	tdestroy(root, leave);
}
CALL("hcreate hsearch hdestroy")
{
	if (!me) {
		if (hcreate(10)) USE(hsearch((ENTRY){"a", "b"}, ENTER));
		hdestroy();
	} else {
		free(malloc(10));
	}
}
CALL("hcreate_r") { struct hsearch_data t = {0}; if (hcreate_r(10, &t)) hdestroy_r(&t); }
CALL("argz_create") { char *z; size_t n; if (!argz_create(arguments, &z, &n)) free(z); }
CALL("envz_add") { char *z = NULL; size_t n = 0; envz_add(&z, &n, "a", "b"); free(z); }

/* --- directories, patterns, paths ------------------------------------------------------------- */

CALL("opendir closedir") { DIR *d = opendir("."); if (d) closedir(d); }
CALL("fdopendir") { DIR *d = fdopendir(open(".", O_RDONLY | O_DIRECTORY)); if (d) closedir(d); }
CALL("readdir") { DIR *d = opendir("."); if (d) { USE(readdir(d)); closedir(d); } }
CALL("readdir64") { DIR *d = opendir("."); if (d) { USE(readdir64(d)); closedir(d); } }
CALL("rewinddir seekdir telldir")
{
	DIR *d = opendir(".");
	if (d) { seekdir(d, telldir(d)); rewinddir(d); closedir(d); }
}
#define LIST(entry, ...) \
	struct entry **l; \
	int n = __VA_ARGS__; \
	for (int i = 0; i < n; i++) \
		free(l[i]); \
	if (n >= 0) \
		free(l)
CALL("scandir") { LIST(dirent, scandir(".", &l, NULL, NULL)); }
CALL("scandir64") { LIST(dirent64, scandir64(".", &l, NULL, NULL)); }
CALL("scandirat") { LIST(dirent, scandirat(AT_FDCWD, ".", &l, NULL, NULL)); }
CALL("scandirat64") { LIST(dirent64, scandirat64(AT_FDCWD, ".", &l, NULL, NULL)); }
static int visit(const char *name, const struct stat *state, int kind)
{
	sink = *name + !state + kind;
	return 0;
}
static int visit_more(const char *name, const struct stat *state, int kind, struct FTW *more)
{
	USE(more);
	return visit(name, state, kind);
}
static int visit64(const char *name, const struct stat64 *state, int kind)
{
	sink = *name + !state + kind;
	return 0;
}
CALL("ftw") { ftw(".", visit, 4); }
CALL("nftw") { nftw(".", visit_more, 4, 0); }
CALL("ftw64") { ftw64(".", visit64, 4); }
CALL("fts_open fts_read fts_close")
{
	char *names[] = {".", NULL};
	FTS *f = fts_open(names, FTS_PHYSICAL, NULL);
	if (f) { USE(fts_read(f)); fts_close(f); }
}
CALL("glob globfree") { glob_t g; if (!glob("*", 0, NULL, &g)) globfree(&g); }
CALL("glob64 globfree64") { glob64_t g; if (!glob64("*", 0, NULL, &g)) globfree64(&g); }
CALL("fnmatch") { USE(fnmatch("*.c", "a.c", 0)); }
CALL("wordexp wordfree") { wordexp_t w; if (!wordexp("a ~ *", &w, WRDE_NOCMD)) wordfree(&w); }
CALL("regcomp regexec regfree")
{
	regex_t r;
	if (!regcomp(&r, "a(b|c)*", REG_EXTENDED)) {
		USE(regexec(&r, "abcb", 0, NULL, 0));
		regfree(&r);
	}
}
CALL("realpath") { free(realpath(".", NULL)); }
extern char *__realpath_chk(const char *, char *, size_t), *__getcwd_chk(char *, size_t, size_t);
CALL("__realpath_chk") { char t[4096]; USE(__realpath_chk(".", t, 4096)); }
CALL("getcwd") { free(getcwd(NULL, 0)); }
CALL("__getcwd_chk") { char t[4096]; USE(__getcwd_chk(t, 4096, 4096)); }
CALL("get_current_dir_name") { free(get_current_dir_name()); }
CALL("canonicalize_file_name") { free(canonicalize_file_name(".")); }
CALL("tempnam") { free(tempnam(".", "a")); }
CALL("ttyname_r") { char t[SHORT]; USE(ttyname_r(0, t, SHORT)); }
CALL("pathconf") { USE(pathconf(".", _PC_NAME_MAX)); }
CALL("shm_open shm_unlink")
{
	char name[32];
	sprintf(name, "/onbeat-abort-%d-%d", getpid(), me);
	int f = shm_open(name, O_CREAT | O_RDWR, 0600);
	if (f >= 0) close(f);
	shm_unlink(name);
}

/* --- languages -------------------------------------------------------------------------------- */

CALL("setlocale") { setlocale(LC_ALL, "C"); }
CALL("localeconv") { USE(localeconv()); }
CALL("newlocale freelocale")
{
	locale_t l = newlocale(LC_ALL_MASK, "C.UTF-8", NULL);
	if (l) freelocale(l);
}
CALL("duplocale")
{
	locale_t l = newlocale(LC_ALL_MASK, "C.UTF-8", NULL), d = duplocale(l);
	freelocale(d);
	freelocale(l);
}
CALL("uselocale") { uselocale(LC_GLOBAL_LOCALE); }
CALL("strcoll") { sink = strcoll("a", "b"); }
CALL("strxfrm") { char t[8]; USE(strxfrm(t, "a", 8)); }
CALL("strerror") { USE(strerror(9999)); }
CALL("strerror_r") { char t[SHORT]; USE(strerror_r(9999, t, SHORT)); }
CALL("strsignal") { USE(strsignal(9999)); }
CALL("gettext") { USE(gettext("text")); }
CALL("dgettext") { USE(dgettext("domain", "text")); }
CALL("dcgettext") { USE(dcgettext("domain", "text", LC_MESSAGES)); }
CALL("ngettext") { USE(ngettext("text", "texts", 2)); }
CALL("textdomain") { textdomain("domain"); }
CALL("bindtextdomain") { bindtextdomain("domain", "."); }
CALL("iconv_open iconv iconv_close")
{
	iconv_t i = iconv_open("UTF-8", "UTF-16");
	if (i != (iconv_t)-1) {
		char in[] = "abcd", out[16], *a = in, *b = out;
		size_t n = 4, m = 16;
		USE(iconv(i, &a, &n, &b, &m));
		iconv_close(i);
	}
}
CALL("mbstowcs") { wchar_t t[8]; USE(mbstowcs(t, "text", 8)); }
CALL("mbrtowc") { wchar_t t; mbstate_t s = {0}; USE(mbrtowc(&t, "text", 4, &s)); }
CALL("wcstombs") { char t[16]; USE(wcstombs(t, L"text", 16)); }
CALL("wctomb") { char t[16]; if (!me) USE(wctomb(t, L'a')); }
CALL("btowc") { USE(btowc('a')); }
CALL("catopen") { nl_catd c = catopen("none", 0); if (c != (nl_catd)-1) catclose(c); }

/* --- messages --------------------------------------------------------------------------------- */

CALL("openlog closelog") { openlog("abort", 0, LOG_USER); closelog(); }
CALL("setlogmask") { setlogmask(LOG_UPTO(LOG_EMERG)); }
/* A message without a reader: its lock is taken for a priority that the mask lets through. */
CALL("syslog") { setlogmask(LOG_UPTO(LOG_EMERG)); syslog(LOG_DEBUG, "%d", 1); }
extern void __syslog_chk(int, int, const char *, ...), __vsyslog_chk(int, int, const char *,
	va_list);
CALL("__syslog_chk") { setlogmask(LOG_UPTO(LOG_EMERG)); __syslog_chk(LOG_DEBUG, 1, "%d", 1); }
LISTED(l1, (const char *format, ...), format, vsyslog(LOG_DEBUG, format, list))
CALL("vsyslog") { setlogmask(LOG_UPTO(LOG_EMERG)); l1("%d", 1); }
LISTED(l2, (const char *format, ...), format, __vsyslog_chk(LOG_DEBUG, 1, format, list))
CALL("__vsyslog_chk") { setlogmask(LOG_UPTO(LOG_EMERG)); l2("%d", 1); }
CALL("warn") { warn("%d", 1); }
CALL("warnx") { warnx("%d", 1); }
LISTED(m1, (const char *format, ...), format, vwarn(format, list))
CALL("vwarn") { m1("%d", 1); }
LISTED(m2, (const char *format, ...), format, vwarnx(format, list))
CALL("vwarnx") { m2("%d", 1); }
CALL("error") { error(0, 0, "%d %s %f", 1, "text", 2.5); }
CALL("error_at_line")
{
	error_at_line(0, 0, "file", 1, "%d %d %d %d %d %d %d", 1, 2, 3, 4, 5, 6, 7);
}
CALL("herror") { herror("x"); }

/* --- names of hosts, users, interfaces; libraries --------------------------------------------- */

CALL("getaddrinfo freeaddrinfo")
{
	struct addrinfo *a;
	if (!getaddrinfo("127.0.0.1", "80", NULL, &a)) freeaddrinfo(a);
}
static const struct sockaddr_in address = {.sin_family = AF_INET};
CALL("getnameinfo")
{
	char t[SHORT];
	getnameinfo((const struct sockaddr *)&address, sizeof(address), t, SHORT, NULL, 0,
		NI_NUMERICHOST);
}
CALL("gethostbyname") { USE(gethostbyname("127.0.0.1")); }
CALL("gethostbyname_r")
{
	struct hostent h, *r;
	char b[512];
	int e;
	gethostbyname_r("127.0.0.1", &h, b, 512, &r, &e);
}
CALL("getservbyname") { USE(getservbyname("http", "tcp")); }
CALL("getprotobyname") { USE(getprotobyname("tcp")); }
CALL("getpwnam") { USE(getpwnam("nobody")); }
CALL("getpwuid") { USE(getpwuid(0)); }
CALL("getgrnam") { USE(getgrnam("root")); }
CALL("getgrgid") { USE(getgrgid(0)); }
CALL("getpwnam_r") { struct passwd p, *r; char b[512]; getpwnam_r("nobody", &p, b, 512, &r); }
CALL("getpwuid_r") { struct passwd p, *r; char b[512]; getpwuid_r(0, &p, b, 512, &r); }
CALL("getgrnam_r") { struct group g, *r; char b[64]; getgrnam_r("nogroup", &g, b, 64, &r); }
CALL("getgrgid_r") { struct group g, *r; char b[512]; getgrgid_r(0, &g, b, 512, &r); }
CALL("setpwent getpwent endpwent") { setpwent(); USE(getpwent()); endpwent(); }
CALL("getspnam") { USE(getspnam("nobody")); }
CALL("getservbyname_r")
{
	struct servent s, *r;
	char b[512];
	getservbyname_r("http", "tcp", &s, b, 512, &r);
}
CALL("getgrouplist") { gid_t g[8]; int n = 8; getgrouplist("nobody", 0, g, &n); }
CALL("getlogin_r") { char t[SHORT]; USE(getlogin_r(t, SHORT)); }
CALL("setutent getutent endutent") { setutent(); USE(getutent()); endutent(); }
CALL("setmntent getmntent_r endmntent")
{
	FILE *f = setmntent("/proc/mounts", "r");
	struct mntent m;
	char b[512];
	if (f) { USE(getmntent_r(f, &m, b, 512)); endmntent(f); }
}
CALL("getifaddrs freeifaddrs") { struct ifaddrs *a; if (!getifaddrs(&a)) freeifaddrs(a); }
CALL("if_nameindex if_freenameindex")
{
	struct if_nameindex *a = if_nameindex();
	if (a) if_freenameindex(a);
}
CALL("inet_ntop") { char t[SHORT]; struct in_addr a = {0}; USE(inet_ntop(AF_INET, &a, t, SHORT)); }
CALL("inet_ntoa") { struct in_addr a = {0}; USE(inet_ntoa(a)); }
CALL("__res_init") { res_init(); }
CALL("dlopen dlclose") { void *l = dlopen(NULL, RTLD_NOW); if (l) dlclose(l); }
CALL("dlsym") { USE(dlsym(RTLD_DEFAULT, "malloc")); }
CALL("dlvsym") { USE(dlvsym(RTLD_DEFAULT, "malloc", "GLIBC_2.2.5")); }
CALL("dladdr") { Dl_info i; dladdr((void *)malloc, &i); }
CALL("dlerror") { USE(dlsym(RTLD_DEFAULT, "nothing of that name"), dlerror()); }
static int object(struct dl_phdr_info *info, size_t size, void *argument)
{
	sink = !info + (int)size + !argument;
	return 0;
}
CALL("dl_iterate_phdr") { dl_iterate_phdr(object, NULL); }
CALL("backtrace_symbols") { void *b[16]; free(backtrace_symbols(b, backtrace(b, 16))); }
CALL("backtrace_symbols_fd") { void *b[16]; backtrace_symbols_fd(b, backtrace(b, 16), 1); }

/* --- others of the system --------------------------------------------------------------------- */

CALL("aio_error aio_cancel")
{
	struct aiocb a = {.aio_fildes = 0};
	aio_cancel(0, &a);
	USE(aio_error(&a));
}
CALL("setuid") { USE(setuid(getuid())); }
CALL("setgroups") { USE(setgroups(0, NULL)); }
CALL("mq_notify") { mq_notify((mqd_t)-1, NULL); }
