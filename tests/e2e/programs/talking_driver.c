/* SPDX-License-Identifier: Apache-2.0
 * A libcuda.so.1 of a few lines that prints, by the function of libc whose number it is given as a stream. What that function returned goes
 * to standard output, by a system call.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

int __fprintf_chk(FILE *, int, const char *, ...);
int __vfprintf_chk(FILE *, int, const char *, va_list);
int __printf_chk(int, const char *, ...);
int __vprintf_chk(int, const char *, va_list);
int __dprintf_chk(int, int, const char *, ...);
int __vdprintf_chk(int, int, const char *, va_list);
int _IO_putc(int, FILE *);

#define LINE "/src/Index.cu:94: %s: block: [%d,0,0], thread: [%d,0,0] Assertion `x < n` failed.\n"
#define THREADS 3

static int (*const by_pointer[])(const char *, FILE *) = {fputs};

static long with_list(int way, const char *format, ...)
{
	va_list args;
	long r = 0;

	va_start(args, format);
	if (way == 0)
		r = vfprintf(stderr, format, args);
	else if (way == 1)
		r = __vfprintf_chk(stderr, 1, format, args);
	else if (way == 2)
		r = vdprintf(2, format, args);
	else if (way == 3)
		r = __vdprintf_chk(2, 1, format, args);
	else if (way == 4)
		r = vprintf(format, args);
	else
		r = __vprintf_chk(1, format, args);
	va_end(args);
	return r;
}

static long letters(int (*put)(int, FILE *), const char *s)
{
	long r = 0;

	for (; *s; s++)
		r += put(*s, stderr);
	return r;
}

static long letters_out(int (*put)(int), const char *s)
{
	long r = 0;

	for (; *s; s++)
		r += put(*s);
	return r;
}

/* Until all of it is written, whatever it takes. */
static long write_all(const char *s, size_t n)
{
	ssize_t r;

	while (n) {
		r = write(2, s, n);
		if (r < 0 && errno != EAGAIN && errno != EINTR)
			return r;
		if (r < 0)
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		s += r > 0 ? r : 0;
		n -= r > 0 ? (size_t)r : 0;
	}
	return 0;
}

static const char *const name[] = {
	"fprintf",	 "__fprintf_chk",  "vfprintf",	"__vfprintf_chk",   "dprintf",	    "__dprintf_chk",
	"vdprintf",	 "__vdprintf_chk", "fputs",	"fputs_unlocked",   "fwrite",	    "fwrite_unlocked",
	"fputc",	 "fputc_unlocked", "putc",	"putc_unlocked",    "_IO_putc",	    "write",
	"writev",	 "pointer",	   "write_all", "printf",	    "__printf_chk", "vprintf",
	"__vprintf_chk", "puts",	   "putchar",	"putchar_unlocked", "pieces",
};

static long say(int way, int thread)
{
	const char *w = name[way];
	char line[256];
	size_t n = (size_t)snprintf(line, sizeof(line), LINE, w, 7, thread);
	struct iovec part[2] = {{line, 10}, {line + 10, n - 10}};

	switch (way) {
	case 0: return fprintf(stderr, LINE, w, 7, thread);
	case 1: return __fprintf_chk(stderr, 1, LINE, w, 7, thread);
	case 2: return with_list(0, LINE, w, 7, thread);
	case 3: return with_list(1, LINE, w, 7, thread);
	case 4: return dprintf(2, LINE, w, 7, thread);
	case 5: return __dprintf_chk(2, 1, LINE, w, 7, thread);
	case 6: return with_list(2, LINE, w, 7, thread);
	case 7: return with_list(3, LINE, w, 7, thread);
	case 8: return fputs(line, stderr);
	case 9: return fputs_unlocked(line, stderr);
	case 10: return (long)fwrite(line, 1, n, stderr);
	case 11: return (long)fwrite_unlocked(line, n, 1, stderr);
	case 12: return letters(fputc, line);
	case 13: return letters(fputc_unlocked, line);
	case 14: return letters(putc, line);
	case 15: return letters(putc_unlocked, line);
	case 16: return letters(_IO_putc, line);
	case 17: return write(2, line, n);
	case 18: return writev(2, part, 2);
	case 19: return by_pointer[thread / 100](line, stderr);
	case 20: return write_all(line, n);
	case 21: return printf(LINE, w, 7, thread);
	case 22: return __printf_chk(1, LINE, w, 7, thread);
	case 23: return with_list(4, LINE, w, 7, thread);
	case 24: return with_list(5, LINE, w, 7, thread);
	case 25: line[n - 1] = '\0'; return puts(line);
	case 26: return letters_out(putchar, line);
	case 27: return letters_out(putchar_unlocked, line);
	default:
		fprintf(stderr, "/src/Index.cu:%d: ", 94);
		fputs(w, stderr);
		fprintf(stderr, ": block: [%d,", 7);
		fprintf(stderr, "0,0], thread: [%d,0,0]", thread);
		return fprintf(stderr, " Assertion `%s` failed.\n", "x < n");
	}
}

int cuStreamSynchronize(void *stream)
{
	char told[64];
	int n;

	for (int thread = 0; thread < THREADS; thread++) {
		errno = 0;
		n = snprintf(told, sizeof(told), "%ld", say((int)(long)stream, thread));
		n += snprintf(told + n, sizeof(told) - (size_t)n, " %d\n", errno);
		syscall(SYS_write, 1, told, (size_t)n);
	}
	return 0;
}

int cuInit(unsigned flags)
{
	return (int)flags;
}

int cuDeviceGetCount(int *count)
{
	*count = 1;
	return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
	*device = 0;
	return ordinal ? 101 : 0;
}

int cuCtxGetDevice(int *device)
{
	*device = 0;
	return 0;
}

int cuMemAlloc_v2(unsigned long long *address, size_t bytes)
{
	*address = 4096;
	return bytes ? 0 : 1;
}

int cuMemFree_v2(unsigned long long address)
{
	return address ? 0 : 1;
}

int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
		   unsigned shared, void *stream, void **params, void **extra)
{
	(void)f, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)stream, (void)params,
		(void)extra;
	return 0;
}
