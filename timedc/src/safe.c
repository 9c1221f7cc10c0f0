/*
 * safe.c: the other functions of the C library that hold its locks or change the heap.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "wrap.h"

#include <dirent.h>
#include <dlfcn.h>
#include <err.h>
#include <execinfo.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <grp.h>
#include <iconv.h>
#include <ifaddrs.h>
#include <libintl.h>
#include <link.h>
#include <locale.h>
#include <net/if.h>
#include <netdb.h>
#include <pwd.h>
#include <regex.h>
#include <search.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>
#include <wordexp.h>

/* --- the program's end, the environment ------------------------------------------------------- */

WRAP_ENDS(exit, (int status), (status))
WRAP_ENDS(quick_exit, (int status), (status))
WRAP_ENDS(abort, (void), ())
WRAP_ENDS(__assert_fail,
	  (const char *what, const char *file, unsigned line, const char *function),
	  (what, file, line, function))
WRAP(int, atexit, (void (*function)(void)), (function))
WRAP(int, at_quick_exit, (void (*function)(void)), (function))
WRAP(int, on_exit, (void (*function)(int, void *), void *argument), (function, argument))
WRAP(char *, getenv, (const char *name), (name))
WRAP(char *, secure_getenv, (const char *name), (name))
WRAP(int, setenv, (const char *name, const char *value, int replace), (name, value, replace))
WRAP(int, unsetenv, (const char *name), (name))
WRAP(int, putenv, (char *text), (text))
WRAP(int, clearenv, (void), ())
WRAP(int, system, (const char *command), (command))
WRAP(int, posix_spawn,
     (pid_t *id, const char *path, const posix_spawn_file_actions_t *actions,
      const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]),
     (id, path, actions, attributes, arguments, environment))
WRAP(int, posix_spawnp,
     (pid_t *id, const char *path, const posix_spawn_file_actions_t *actions,
      const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]),
     (id, path, actions, attributes, arguments, environment))

/* --- date and time ---------------------------------------------------------------------------- */

WRAP(struct tm *, localtime, (const time_t *at), (at))
WRAP(struct tm *, localtime_r, (const time_t *at, struct tm *out), (at, out))
WRAP(struct tm *, gmtime, (const time_t *at), (at))
WRAP(struct tm *, gmtime_r, (const time_t *at, struct tm *out), (at, out))
WRAP(time_t, mktime, (struct tm *date), (date))
WRAP(time_t, timegm, (struct tm *date), (date))
WRAP(time_t, timelocal, (struct tm *date), (date))
WRAP(char *, asctime, (const struct tm *date), (date))
WRAP(char *, asctime_r, (const struct tm *date, char *text), (date, text))
WRAP(char *, ctime, (const time_t *at), (at))
WRAP(char *, ctime_r, (const time_t *at, char *text), (at, text))
WRAP(size_t, strftime, (char *text, size_t size, const char *format, const struct tm *date),
     (text, size, format, date))
WRAP(size_t, wcsftime,
     (wchar_t *text, size_t size, const wchar_t *format, const struct tm *date),
     (text, size, format, date))
WRAP(char *, strptime, (const char *text, const char *format, struct tm *date),
     (text, format, date))
WRAP(struct tm *, getdate, (const char *text), (text))
WRAP_VOID(tzset, (void), ())
WRAP(int, timer_create, (clockid_t clock, struct sigevent *event, timer_t *timer),
     (clock, event, timer))
WRAP(int, timer_delete, (timer_t timer), (timer))

/* --- numbers, sorting, tables ----------------------------------------------------------------- */

WRAP(int, rand, (void), ())
WRAP_VOID(srand, (unsigned seed), (seed))
WRAP(long, random, (void), ())
WRAP_VOID(srandom, (unsigned seed), (seed))
WRAP(char *, initstate, (unsigned seed, char *state, size_t size), (seed, state, size))
WRAP(char *, setstate, (char *state), (state))
#if __GLIBC_PREREQ(2, 36)
WRAP(uint32_t, arc4random, (void), ())
WRAP(uint32_t, arc4random_uniform, (uint32_t bound), (bound))
WRAP_VOID(arc4random_buf, (void *into, size_t size), (into, size))
#endif
typedef int comparison(const void *, const void *);
typedef int comparison_with(const void *, const void *, void *);
WRAP_VOID(qsort, (void *base, size_t count, size_t size, comparison *compare),
	  (base, count, size, compare))
WRAP_VOID(qsort_r, (void *base, size_t count, size_t size, comparison_with *compare, void *more),
	  (base, count, size, compare, more))
WRAP(void *, tsearch, (const void *key, void **root, comparison *compare), (key, root, compare))
WRAP(void *, tdelete, (const void *key, void **root, comparison *compare), (key, root, compare))
WRAP_VOID(tdestroy, (void *root, void (*function)(void *)), (root, function))
WRAP(int, hcreate, (size_t count), (count))
WRAP_VOID(hdestroy, (void), ())
WRAP(ENTRY *, hsearch, (ENTRY item, ACTION action), (item, action))

/* --- directories, patterns, paths ------------------------------------------------------------- */

WRAP_GETS(DIR *, opendir, (const char *name), (name))
WRAP_GETS(DIR *, fdopendir, (int descriptor), (descriptor))
WRAP_GIVES(int, closedir, (DIR *directory), (directory), directory)
WRAP(struct dirent *, readdir, (DIR *directory), (directory))
WRAP(struct dirent64 *, readdir64, (DIR *directory), (directory))
WRAP_VOID(rewinddir, (DIR *directory), (directory))
WRAP_VOID(seekdir, (DIR *directory, long position), (directory, position))
WRAP(long, telldir, (DIR *directory), (directory))
#define WRAP_SCANDIR(name, parameters, arguments) \
	WRAP_DECLARE(int, name, parameters); \
	int __wrap_##name parameters \
	{ \
		struct timedc_thread *thread = timedc_defer(); \
		int result = __real_##name arguments; \
		for (int i = 0; i < result; i++) \
			timedc_hold(thread, (*list)[i]); \
		if (result >= 0) \
			timedc_hold(thread, *list); \
		timedc_resume(thread); \
		return result; \
	}
typedef struct dirent entry;
typedef struct dirent64 entry64;
typedef int wants(const entry *);
typedef int wants64(const entry64 *);
typedef int compares(const entry **, const entry **);
typedef int compares64(const entry64 **, const entry64 **);
WRAP_SCANDIR(scandir, (const char *name, entry ***list, wants *wanted, compares *compare),
	     (name, list, wanted, compare))
WRAP_SCANDIR(scandir64,
	     (const char *name, entry64 ***list, wants64 *wanted, compares64 *compare),
	     (name, list, wanted, compare))
WRAP_SCANDIR(scandirat,
	     (int at, const char *name, entry ***list, wants *wanted, compares *compare),
	     (at, name, list, wanted, compare))
WRAP_SCANDIR(scandirat64,
	     (int at, const char *name, entry64 ***list, wants64 *wanted, compares64 *compare),
	     (at, name, list, wanted, compare))
WRAP(int, ftw, (const char *name, __ftw_func_t function, int depth), (name, function, depth))
WRAP(int, nftw, (const char *name, __nftw_func_t function, int depth, int flags),
     (name, function, depth, flags))
WRAP_TAKES(int, glob,
	   (const char *pattern, int flags, int (*function)(const char *, int), glob_t *found),
	   (pattern, flags, function, found), found)
WRAP_GIVES_VOID(globfree, (glob_t *found), (found), found)
WRAP_TAKES(int, glob64,
	   (const char *pattern, int flags, int (*function)(const char *, int), glob64_t *found),
	   (pattern, flags, function, found), found)
WRAP_GIVES_VOID(globfree64, (glob64_t *found), (found), found)
WRAP_TAKES(int, wordexp, (const char *text, wordexp_t *words, int flags), (text, words, flags),
	   words)
WRAP_GIVES_VOID(wordfree, (wordexp_t *words), (words), words)
WRAP_TAKES(int, regcomp, (regex_t *pattern, const char *text, int flags), (pattern, text, flags),
	   pattern)
WRAP_GIVES_VOID(regfree, (regex_t *pattern), (pattern), pattern)
WRAP(int, regexec,
     (const regex_t *pattern, const char *text, size_t count, regmatch_t *matches, int flags),
     (pattern, text, count, matches, flags))
WRAP_GETS(char *, canonicalize_file_name, (const char *name), (name))
WRAP_GETS(char *, get_current_dir_name, (void), ())

/* Memory only when the caller gives none. */
#define WRAP_ROOM(name, parameters, arguments) \
	WRAP_DECLARE(char *, name, parameters); \
	char *__wrap_##name parameters \
	{ \
		struct timedc_thread *thread = timedc_defer(); \
		char *result = __real_##name arguments; \
		if (result && !room) \
			timedc_hold(thread, result); \
		timedc_resume(thread); \
		return result; \
	}
WRAP_ROOM(realpath, (const char *name, char *room), (name, room))
WRAP_ROOM(__realpath_chk, (const char *name, char *room, size_t size), (name, room, size))
WRAP_ROOM(getcwd, (char *room, size_t size), (room, size))
WRAP_ROOM(__getcwd_chk, (char *room, size_t size, size_t most), (room, size, most))

WRAP_GETS(char **, backtrace_symbols, (void *const *list, int count), (list, count))

/* --- languages -------------------------------------------------------------------------------- */

WRAP(char *, setlocale, (int category, const char *name), (category, name))
WRAP(struct lconv *, localeconv, (void), ())
WRAP_GETS(locale_t, newlocale, (int mask, const char *name, locale_t base), (mask, name, base))
WRAP_GETS(locale_t, duplocale, (locale_t locale), (locale))
WRAP_GIVES_VOID(freelocale, (locale_t locale), (locale), locale)
WRAP(locale_t, uselocale, (locale_t locale), (locale))
WRAP(int, strcoll, (const char *left, const char *right), (left, right))
WRAP(size_t, strxfrm, (char *to, const char *from, size_t size), (to, from, size))
WRAP(char *, strerror, (int number), (number))
WRAP(char *, strsignal, (int number), (number))
WRAP(char *, gettext, (const char *text), (text))
WRAP(char *, dgettext, (const char *domain, const char *text), (domain, text))
WRAP(char *, dcgettext, (const char *domain, const char *text, int category),
     (domain, text, category))
WRAP(char *, textdomain, (const char *domain), (domain))
WRAP(char *, bindtextdomain, (const char *domain, const char *name), (domain, name))
WRAP(iconv_t, iconv_open, (const char *to, const char *from), (to, from))
WRAP(size_t, iconv, (iconv_t way, char **in, size_t *in_left, char **out, size_t *out_left),
     (way, in, in_left, out, out_left))
WRAP(int, iconv_close, (iconv_t way), (way))

/* --- the system's log, error messages --------------------------------------------------------- */

WRAP_VOID(openlog, (const char *name, int option, int facility), (name, option, facility))
WRAP_VOID(closelog, (void), ())
WRAP(int, setlogmask, (int mask), (mask))
WRAP_VOID(vsyslog, (int priority, const char *format, va_list list), (priority, format, list))
WRAP_VOID(__vsyslog_chk, (int priority, int flag, const char *format, va_list list),
	  (priority, flag, format, list))
WRAP_VOID(vwarn, (const char *format, va_list list), (format, list))
WRAP_VOID(vwarnx, (const char *format, va_list list), (format, list))
WRAP_ENDS(verr, (int status, const char *format, va_list list), (status, format, list))
WRAP_ENDS(verrx, (int status, const char *format, va_list list), (status, format, list))

#define WRAP_LIST_VOID(name, parameters, with_list, arguments) \
	WRAP_DECLARE(void, name, parameters); \
	void __wrap_##name parameters \
	{ \
		struct timedc_thread *thread = timedc_defer(); \
		va_list list; \
		va_start(list, format); \
		with_list arguments; \
		va_end(list); \
		timedc_resume(thread); \
	}
WRAP_LIST_VOID(syslog, (int priority, const char *format, ...), __real_vsyslog,
	       (priority, format, list))
WRAP_LIST_VOID(__syslog_chk, (int priority, int flag, const char *format, ...),
	       __real___vsyslog_chk, (priority, flag, format, list))
WRAP_LIST_VOID(warn, (const char *format, ...), __real_vwarn, (format, list))
WRAP_LIST_VOID(warnx, (const char *format, ...), __real_vwarnx, (format, list))
WRAP_LIST_VOID(err, (int status, const char *format, ...), __real_verr, (status, format, list))
WRAP_LIST_VOID(errx, (int status, const char *format, ...), __real_verrx, (status, format, list))

/* --- names of hosts, users, interfaces; libraries --------------------------------------------- */

WRAP_TAKES(int, getaddrinfo,
	   (const char *host, const char *service, const struct addrinfo *hints,
	    struct addrinfo **found),
	   (host, service, hints, found), *found)
WRAP_GIVES_VOID(freeaddrinfo, (struct addrinfo *found), (found), found)
WRAP(int, getnameinfo,
     (const struct sockaddr *address, socklen_t size, char *host, socklen_t host_size,
      char *service, socklen_t service_size, int flags),
     (address, size, host, host_size, service, service_size, flags))
WRAP(struct hostent *, gethostbyname, (const char *name), (name))
WRAP(struct servent *, getservbyname, (const char *name, const char *protocol), (name, protocol))
WRAP(struct protoent *, getprotobyname, (const char *name), (name))
WRAP(struct passwd *, getpwnam, (const char *name), (name))
WRAP(struct passwd *, getpwuid, (uid_t id), (id))
WRAP(struct group *, getgrnam, (const char *name), (name))
WRAP(struct group *, getgrgid, (gid_t id), (id))
WRAP_TAKES(int, getifaddrs, (struct ifaddrs **found), (found), *found)
WRAP_GIVES_VOID(freeifaddrs, (struct ifaddrs *found), (found), found)
WRAP_GETS(struct if_nameindex *, if_nameindex, (void), ())
WRAP_GIVES_VOID(if_freenameindex, (struct if_nameindex *found), (found), found)
WRAP(void *, dlopen, (const char *name, int mode), (name, mode))
WRAP(int, dlclose, (void *library), (library))
/* What is found is called without the linker's doing. */
WRAP_DECLARE(void *, dlsym, (void *library, const char *name));
void *__wrap_dlsym(void *library, const char *name)
{
	struct timedc_thread *thread = timedc_defer();
	void *found = timedc_deferring(__real_dlsym(library, name));
	timedc_resume(thread);
	return found;
}
WRAP_DECLARE(void *, dlvsym, (void *library, const char *name, const char *version));
void *__wrap_dlvsym(void *library, const char *name, const char *version)
{
	struct timedc_thread *thread = timedc_defer();
	void *found = timedc_deferring(__real_dlvsym(library, name, version));
	timedc_resume(thread);
	return found;
}
WRAP(int, dladdr, (const void *address, Dl_info *out), (address, out))
WRAP(char *, dlerror, (void), ())
WRAP(int, dl_iterate_phdr,
     (int (*function)(struct dl_phdr_info *, size_t, void *), void *argument),
     (function, argument))
