/*
 * stdio.c: streams. A stream that a segment opens keeps its abort waiting until it is closed.
 *
 * SPDX-License-Identifier: Apache-2.0 OR MIT
 */
#include "wrap.h"

#include <stdarg.h>
#include <stdlib.h>
#include <wchar.h>

/* --- streams ---------------------------------------------------------------------------------- */

WRAP_GETS(FILE *, fopen, (const char *name, const char *mode), (name, mode))
WRAP_GETS(FILE *, fopen64, (const char *name, const char *mode), (name, mode))
WRAP_GETS(FILE *, fdopen, (int descriptor, const char *mode), (descriptor, mode))
WRAP_GETS(FILE *, tmpfile, (void), ())
WRAP_GETS(FILE *, tmpfile64, (void), ())
WRAP_GETS(FILE *, popen, (const char *command, const char *mode), (command, mode))
WRAP_GETS(FILE *, fmemopen, (void *memory, size_t size, const char *mode), (memory, size, mode))
WRAP_GETS(FILE *, open_memstream, (char **memory, size_t *size), (memory, size))
WRAP_GETS(FILE *, open_wmemstream, (wchar_t **memory, size_t *size), (memory, size))
WRAP_GETS(FILE *, fopencookie, (void *cookie, const char *mode, cookie_io_functions_t functions),
	  (cookie, mode, functions))
WRAP_GIVES(int, fclose, (FILE *file), (file), file)
WRAP_GIVES(int, pclose, (FILE *file), (file), file)
WRAP(FILE *, freopen, (const char *name, const char *mode, FILE *file), (name, mode, file))
WRAP(FILE *, freopen64, (const char *name, const char *mode, FILE *file), (name, mode, file))
WRAP(int, fflush, (FILE *file), (file))
WRAP(int, fflush_unlocked, (FILE *file), (file))
WRAP(int, fcloseall, (void), ())
WRAP(int, setvbuf, (FILE *file, char *buffer, int mode, size_t size), (file, buffer, mode, size))
WRAP_VOID(setbuf, (FILE *file, char *buffer), (file, buffer))
WRAP_VOID(setbuffer, (FILE *file, char *buffer, size_t size), (file, buffer, size))
WRAP_VOID(setlinebuf, (FILE *file), (file))
WRAP(int, fseek, (FILE *file, long offset, int whence), (file, offset, whence))
WRAP(int, fseeko, (FILE *file, off_t offset, int whence), (file, offset, whence))
WRAP(int, fseeko64, (FILE *file, off64_t offset, int whence), (file, offset, whence))
WRAP(long, ftell, (FILE *file), (file))
WRAP(off_t, ftello, (FILE *file), (file))
WRAP(off64_t, ftello64, (FILE *file), (file))
WRAP_VOID(rewind, (FILE *file), (file))
WRAP(int, fgetpos, (FILE *file, fpos_t *position), (file, position))
WRAP(int, fgetpos64, (FILE *file, fpos64_t *position), (file, position))
WRAP(int, fsetpos, (FILE *file, const fpos_t *position), (file, position))
WRAP(int, fsetpos64, (FILE *file, const fpos64_t *position), (file, position))
WRAP_VOID(clearerr, (FILE *file), (file))
WRAP(int, feof, (FILE *file), (file))
WRAP(int, ferror, (FILE *file), (file))
WRAP_VOID(perror, (const char *text), (text))
WRAP_DECLARE(void, flockfile, (FILE *file));
void __wrap_flockfile(FILE *file)
{
	struct timedc_thread *thread = timedc_defer();
	__real_flockfile(file);
	timedc_hold(thread, file);
	timedc_resume(thread);
}
WRAP_TAKES(int, ftrylockfile, (FILE *file), (file), file)
WRAP_GIVES_VOID(funlockfile, (FILE *file), (file), file)

/* --- characters and lines --------------------------------------------------------------------- */

WRAP(int, fgetc, (FILE *file), (file))
WRAP(int, getc, (FILE *file), (file))
WRAP(int, _IO_getc, (FILE *file), (file))
WRAP(int, getchar, (void), ())
WRAP(int, fgetc_unlocked, (FILE *file), (file))
WRAP(int, getc_unlocked, (FILE *file), (file))
WRAP(int, getchar_unlocked, (void), ())
WRAP(int, __uflow, (FILE *file), (file))
WRAP(int, ungetc, (int octet, FILE *file), (octet, file))
WRAP(int, getw, (FILE *file), (file))
WRAP(char *, fgets, (char *text, int size, FILE *file), (text, size, file))
WRAP(char *, fgets_unlocked, (char *text, int size, FILE *file), (text, size, file))
WRAP(char *, __fgets_chk, (char *text, size_t room, int size, FILE *file),
     (text, room, size, file))
WRAP(char *, __fgets_unlocked_chk, (char *text, size_t room, int size, FILE *file),
     (text, room, size, file))
WRAP(int, fputc, (int octet, FILE *file), (octet, file))
WRAP(int, putc, (int octet, FILE *file), (octet, file))
WRAP(int, _IO_putc, (int octet, FILE *file), (octet, file))
WRAP(int, putchar, (int octet), (octet))
WRAP(int, fputc_unlocked, (int octet, FILE *file), (octet, file))
WRAP(int, putc_unlocked, (int octet, FILE *file), (octet, file))
WRAP(int, putchar_unlocked, (int octet), (octet))
WRAP(int, __overflow, (FILE *file, int octet), (file, octet))
WRAP(int, putw, (int word, FILE *file), (word, file))
WRAP(int, fputs, (const char *text, FILE *file), (text, file))
WRAP(int, fputs_unlocked, (const char *text, FILE *file), (text, file))
WRAP(int, puts, (const char *text), (text))
WRAP(size_t, fread, (void *into, size_t size, size_t count, FILE *file), (into, size, count, file))
WRAP(size_t, fread_unlocked, (void *into, size_t size, size_t count, FILE *file),
     (into, size, count, file))
WRAP(size_t, __fread_chk, (void *into, size_t room, size_t size, size_t count, FILE *file),
     (into, room, size, count, file))
WRAP(size_t, __fread_unlocked_chk,
     (void *into, size_t room, size_t size, size_t count, FILE *file),
     (into, room, size, count, file))
WRAP(size_t, fwrite, (const void *from, size_t size, size_t count, FILE *file),
     (from, size, count, file))
WRAP(size_t, fwrite_unlocked, (const void *from, size_t size, size_t count, FILE *file),
     (from, size, count, file))
WRAP(wint_t, fgetwc, (FILE *file), (file))
WRAP(wint_t, getwc, (FILE *file), (file))
WRAP(wint_t, getwchar, (void), ())
WRAP(wint_t, ungetwc, (wint_t letter, FILE *file), (letter, file))
WRAP(wchar_t *, fgetws, (wchar_t *text, int size, FILE *file), (text, size, file))
WRAP(wint_t, fputwc, (wchar_t letter, FILE *file), (letter, file))
WRAP(wint_t, putwc, (wchar_t letter, FILE *file), (letter, file))
WRAP(wint_t, putwchar, (wchar_t letter), (letter))
WRAP(int, fputws, (const wchar_t *text, FILE *file), (text, file))
WRAP(int, fwide, (FILE *file, int mode), (file, mode))

/* The line is memory that the call may have obtained. */
#define WRAP_LINE(name, parameters, arguments) \
	WRAP_DECLARE(ssize_t, name, parameters); \
	ssize_t __wrap_##name parameters \
	{ \
		struct timedc_thread *thread = timedc_defer(); \
		char *old = *line; \
		ssize_t result = __real_##name arguments; \
		if (*line != old) { \
			timedc_unhold(thread, old); \
			timedc_hold(thread, *line); \
		} \
		timedc_resume(thread); \
		return result; \
	}
WRAP_LINE(getline, (char **line, size_t *size, FILE *file), (line, size, file))
WRAP_LINE(getdelim, (char **line, size_t *size, int end, FILE *file), (line, size, end, file))
WRAP_LINE(__getdelim, (char **line, size_t *size, int end, FILE *file), (line, size, end, file))

/* --- formatted -------------------------------------------------------------------------------- */

WRAP(int, vprintf, (const char *format, va_list list), (format, list))
WRAP(int, vfprintf, (FILE *file, const char *format, va_list list), (file, format, list))
WRAP(int, vdprintf, (int file, const char *format, va_list list), (file, format, list))
WRAP(int, vsprintf, (char *text, const char *format, va_list list), (text, format, list))
WRAP(int, vsnprintf, (char *text, size_t size, const char *format, va_list list),
     (text, size, format, list))
WRAP_LIST(int, printf, (const char *format, ...), __real_vprintf, (format, list), format)
WRAP_LIST(int, fprintf, (FILE *file, const char *format, ...), __real_vfprintf,
	  (file, format, list), format)
WRAP_LIST(int, dprintf, (int file, const char *format, ...), __real_vdprintf,
	  (file, format, list), format)
WRAP_LIST(int, sprintf, (char *text, const char *format, ...), __real_vsprintf,
	  (text, format, list), format)
WRAP_LIST(int, snprintf, (char *text, size_t size, const char *format, ...), __real_vsnprintf,
	  (text, size, format, list), format)

WRAP(int, __vprintf_chk, (int flag, const char *format, va_list list), (flag, format, list))
WRAP(int, __vfprintf_chk, (FILE *file, int flag, const char *format, va_list list),
     (file, flag, format, list))
WRAP(int, __vdprintf_chk, (int file, int flag, const char *format, va_list list),
     (file, flag, format, list))
WRAP(int, __vsprintf_chk, (char *text, int flag, size_t room, const char *format, va_list list),
     (text, flag, room, format, list))
WRAP(int, __vsnprintf_chk,
     (char *text, size_t size, int flag, size_t room, const char *format, va_list list),
     (text, size, flag, room, format, list))
WRAP_LIST(int, __printf_chk, (int flag, const char *format, ...), __real___vprintf_chk,
	  (flag, format, list), format)
WRAP_LIST(int, __fprintf_chk, (FILE *file, int flag, const char *format, ...),
	  __real___vfprintf_chk, (file, flag, format, list), format)
WRAP_LIST(int, __dprintf_chk, (int file, int flag, const char *format, ...),
	  __real___vdprintf_chk, (file, flag, format, list), format)
WRAP_LIST(int, __sprintf_chk, (char *text, int flag, size_t room, const char *format, ...),
	  __real___vsprintf_chk, (text, flag, room, format, list), format)
WRAP_LIST(int, __snprintf_chk,
	  (char *text, size_t size, int flag, size_t room, const char *format, ...),
	  __real___vsnprintf_chk, (text, size, flag, room, format, list), format)

/* The text is memory. */
#define WRAP_TEXT(name, parameters, with_list, arguments, begin, finish) \
	WRAP_DECLARE(int, name, parameters); \
	int __wrap_##name parameters \
	{ \
		struct timedc_thread *thread = timedc_defer(); \
		begin; \
		int result = with_list arguments; \
		finish; \
		if (result >= 0) \
			timedc_hold(thread, *text); \
		timedc_resume(thread); \
		return result; \
	}
#define LIST_BEGIN va_list list; va_start(list, format)
WRAP_TEXT(vasprintf, (char **text, const char *format, va_list list), __real_vasprintf,
	  (text, format, list), (void)0, (void)0)
WRAP_TEXT(__vasprintf_chk, (char **text, int flag, const char *format, va_list list),
	  __real___vasprintf_chk, (text, flag, format, list), (void)0, (void)0)
WRAP_TEXT(asprintf, (char **text, const char *format, ...), __real_vasprintf,
	  (text, format, list), LIST_BEGIN, va_end(list))
WRAP_TEXT(__asprintf_chk, (char **text, int flag, const char *format, ...),
	  __real___vasprintf_chk, (text, flag, format, list), LIST_BEGIN, va_end(list))

#define WRAP_SCAN(with_list, file_list, text_list, plain, of_file, of_text) \
	WRAP(int, with_list, (const char *format, va_list list), (format, list)) \
	WRAP(int, file_list, (FILE *file, const char *format, va_list list), \
	     (file, format, list)) \
	WRAP(int, text_list, (const char *text, const char *format, va_list list), \
	     (text, format, list)) \
	WRAP_LIST(int, plain, (const char *format, ...), __real_##with_list, (format, list), \
		  format) \
	WRAP_LIST(int, of_file, (FILE *file, const char *format, ...), __real_##file_list, \
		  (file, format, list), format) \
	WRAP_LIST(int, of_text, (const char *text, const char *format, ...), \
		  __real_##text_list, (text, format, list), format)
WRAP_SCAN(vscanf, vfscanf, vsscanf, scanf, fscanf, sscanf)
WRAP_SCAN(__isoc99_vscanf, __isoc99_vfscanf, __isoc99_vsscanf, __isoc99_scanf, __isoc99_fscanf,
	  __isoc99_sscanf)
#if __GLIBC_PREREQ(2, 38)
WRAP_SCAN(__isoc23_vscanf, __isoc23_vfscanf, __isoc23_vsscanf, __isoc23_scanf, __isoc23_fscanf,
	  __isoc23_sscanf)
#endif

WRAP(int, vwprintf, (const wchar_t *format, va_list list), (format, list))
WRAP(int, vfwprintf, (FILE *file, const wchar_t *format, va_list list), (file, format, list))
WRAP(int, vswprintf, (wchar_t *text, size_t size, const wchar_t *format, va_list list),
     (text, size, format, list))
WRAP_LIST(int, wprintf, (const wchar_t *format, ...), __real_vwprintf, (format, list), format)
WRAP_LIST(int, fwprintf, (FILE *file, const wchar_t *format, ...), __real_vfwprintf,
	  (file, format, list), format)
WRAP_LIST(int, swprintf, (wchar_t *text, size_t size, const wchar_t *format, ...),
	  __real_vswprintf, (text, size, format, list), format)
WRAP(int, __vwprintf_chk, (int flag, const wchar_t *format, va_list list), (flag, format, list))
WRAP(int, __vfwprintf_chk, (FILE *file, int flag, const wchar_t *format, va_list list),
     (file, flag, format, list))
WRAP_LIST(int, __wprintf_chk, (int flag, const wchar_t *format, ...), __real___vwprintf_chk,
	  (flag, format, list), format)
WRAP_LIST(int, __fwprintf_chk, (FILE *file, int flag, const wchar_t *format, ...),
	  __real___vfwprintf_chk, (file, flag, format, list), format)
