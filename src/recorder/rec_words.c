/* SPDX-License-Identifier: Apache-2.0
 * What the driver prints: the line of a failed assertion, once for each thread, and what kernels print themselves.
 *
 * No call returns these words; they go to the program's standard error and output, which stay what they are. So they are taken
 * where the driver hands them to libc: its own references to the few functions that write lead here (rec_imports.c), and from
 * here on to libc. The program's calls of the same functions are not touched. What is kept is bounded, and each line kept once.
 */
#undef _FORTIFY_SOURCE			/* our look at a format must not be what ends the program: libc's own will say so */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rec.h"

#define ENOUGH 1000			/* lines for which there is no room */

enum { OUT = 1, ERR = 2 };		/* descriptors */

static struct {
	struct spin lock;
	struct cw_printed *table;	/* NULL: no room for one */
	uint32_t generation;		/* of the process image that has it */
	_Atomic uint32_t unheard;	/* lines of kernels that found no room */
	struct owed { const char *at; size_t n; uint64_t hash; } owed[2];	/* not written yet, by the last write() of each stream */
} words;
LOCK_LISTED(words, words.lock);

/* "block: [1,2,3], thread: [4,5,6]" at `s`: its end; NULL: something else. */
static const char *read_place(const char *s, uint32_t at[6])
{
	static const char *const before[6] = {"block: [", ",", ",", "], thread: [", ",", ","};

	for (int i = 0; i < 6; i++) {
		size_t n = strlen(before[i]);

		if (strncmp(s, before[i], n) != 0 || s[n] < '0' || s[n] > '9')
			return NULL;
		for (s += n, at[i] = 0; *s >= '0' && *s <= '9'; s++)
			at[i] = at[i] * 10 + (uint32_t)(*s - '0');
	}
	return *s == ']' ? s + 1 : NULL;
}

/* Where it is in a line that has one: the last one, since a function's parameters may be called anything. */
static void find_place(struct cw_printed_line *l)
{
	uint32_t at[6];

	for (const char *s = l->text, *end; (s = strstr(s, "block: [")) != NULL; s++) {
		end = read_place(s, at);
		if (!end)
			continue;
		l->place = (uint32_t)(s - l->text);
		l->place_end = (uint32_t)(end - l->text);
		memcpy(l->block, at, sizeof(l->block));
		memcpy(l->thread, at + 3, sizeof(l->thread));
	}
}

static size_t kept_of(const struct cw_printed_line *l)
{
	return l->length < sizeof(l->text) ? l->length : sizeof(l->text) - 1;
}

static bool same_words(const struct cw_printed_line *a, const struct cw_printed_line *b)
{
	size_t rest = kept_of(a) - a->place_end;

	return a->place == b->place && rest == kept_of(b) - b->place_end && memcmp(a->text, b->text, a->place) == 0 &&
	       memcmp(a->text + a->place_end, b->text + b->place_end, rest) == 0;
}

static void count_block(struct cw_printed_line *to, const uint32_t block[3])
{
	uint32_t bit = (block[0] + 31 * block[1] + 961 * block[2]) % 256;

	to->blocks[bit / 64] |= 1ull << bit % 64;
}

/* A complete line, into the table; counted last. */
static void keep(struct cw_printed_line *line)
{
	struct cw_printed *t = words.table;
	struct cw_printed_line *list;

	find_place(line);
	list = strncmp(line->text + line->place_end, " Assertion", 10) == 0 && line->place_end ? t->assertion : t->other;
	for (uint32_t i = 0; i < CW_PRINTED_LINES; i++) {
		struct cw_printed_line *to = &list[i];

		if (to->count && (to->stream != line->stream || !same_words(to, line)))
			continue;
		count_block(to->count ? to : line, line->block);
		if (!to->count) {
			line->count = 0;
			line->ticks = rec_ticks();
			memcpy(to, line, sizeof(*to));
		}
		shared_set(&to->count, to->count + 1);
		return;
	}
	shared_set(&t->lost, t->lost + 1);
	if (line->stream == OUT)
		atomic_fetch_add_explicit(&words.unheard, 1, memory_order_relaxed);
}

static void add(struct cw_printed_line *open, const char *s, size_t n)
{
	size_t room = sizeof(open->text) - 1 - kept_of(open);

	memcpy(open->text + kept_of(open), s, n < room ? n : room);
	shared_set(&open->length, open->length + (uint32_t)n);
}

static void begin(struct cw_printed_line *open, uint32_t stream)
{
	memset(open, 0, offsetof(struct cw_printed_line, text) + kept_of(open) + 1);
	open->stream = stream;
}

static void take(int stream, const char *s, size_t n)
{
	struct cw_printed_line *open = &words.table->open[stream - 1];
	const char *end;

	for (; n; n -= (size_t)(end - s), s = end) {
		end = memchr(s, '\n', n);
		add(open, s, end ? (size_t)(end - s) : n);
		if (!end)
			return;
		if (open->length)
			keep(open);
		begin(open, (uint32_t)stream);
		end++;
	}
}

/* Any thread, one of the driver's own, too. Another one that prints at the same moment is waited for, but not for long. */
static void said(int stream, const char *s, size_t n)
{
	uint32_t me = rec_self ? rec_self->tid : SPIN_STRANGER;
	int saved = errno;

	if (!rec_asleep() && words.table && words.generation == rec.generation) {
		if (spin_once(&words.lock, me) || spin_wait(&words.lock, me)) {
			take(stream, s, n);
			spin_done(&words.lock);
		} else {
			shared_add(&words.table->lost, 1);
		}
	}
	errno = saved;
}

static uint64_t hash_of(const char *s, size_t n)
{
	uint64_t h = 14695981039346656037ull;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)s[i]) * 1099511628211ull;
	return h;
}

/* What write() did not accept is written again: it has been said already. */
static bool said_before(int stream, const char *s, size_t n)
{
	const struct owed *o = &words.owed[stream - 1];

	return o->n == n && o->at == s && o->hash == hash_of(s, n);
}

static void owe(int stream, const char *s, size_t n, ssize_t written)
{
	size_t done = written > 0 ? (size_t)written : 0;

	words.owed[stream - 1] = (struct owed){.n = 0};
	if (n > done)
		words.owed[stream - 1] = (struct owed){s + done, n - done, hash_of(s + done, n - done)};
}

/* As it will be printed. What is longer than we keep loses its end, but not the end of the line. */
static void said_format(int stream, const char *format, va_list args)
{
	char text[sizeof(((struct cw_printed_line *)0)->text) + 2];
	int saved = errno, n = vsnprintf(text, sizeof(text), format, args);

	if (n >= (int)sizeof(text)) {
		n = sizeof(text) - 1;
		if (format[0] && format[strlen(format) - 1] == '\n')
			text[n - 1] = '\n';
	}
	if (n > 0)
		said(stream, text, (size_t)n);
	errno = saved;
}

/* A kernel that prints without end is not listened to for long: formatting everything twice would cost it a third more time. */
static int listen_to(int stream)
{
	return stream == OUT && atomic_load_explicit(&words.unheard, memory_order_relaxed) >= ENOUGH ? 0 : stream;
}

static int stream_of(const FILE *file)
{
	return file == stderr ? ERR : file == stdout ? listen_to(OUT) : 0;
}

static int stream_of_descriptor(int fd)
{
	return fd == OUT || fd == ERR ? listen_to(fd) : 0;
}

/* Functions of libc without a declaration that can be relied on. */
int __fprintf_chk(FILE *, int, const char *, ...);
int __vfprintf_chk(FILE *, int, const char *, va_list);
int __printf_chk(int, const char *, ...);
int __vprintf_chk(int, const char *, va_list);
int __dprintf_chk(int, int, const char *, ...);
int __vdprintf_chk(int, int, const char *, va_list);
int _IO_putc(int, FILE *);

/* The words come before the call: writing to a pipe without a reader may end the process. */
static void say_list(int stream, const char *format, va_list args)
{
	va_list copy;

	if (!stream)
		return;
	va_copy(copy, args);
	said_format(stream, format, copy);
	va_end(copy);
}

/* Functions that take their arguments one by one, and those that take them as a list. `call` has them as a list. */
#define PRINTS(name, stream, params, call)      \
	static int words_##name params          \
	{                                       \
		va_list args;                   \
		int n;                          \
\
		va_start(args, format);         \
		say_list(stream, format, args); \
		n = call;                       \
		va_end(args);                   \
		return n;                       \
	}
#define LISTS(name, stream, params, call)       \
	static int words_##name params          \
	{                                       \
		say_list(stream, format, args); \
		return call;                    \
	}
PRINTS(fprintf, stream_of(file), (FILE * file, const char *format, ...), vfprintf(file, format, args))
PRINTS(__fprintf_chk, stream_of(file), (FILE * file, int flag, const char *format, ...),
       __vfprintf_chk(file, flag, format, args))
PRINTS(printf, listen_to(OUT), (const char *format, ...), vprintf(format, args))
PRINTS(__printf_chk, listen_to(OUT), (int flag, const char *format, ...), __vprintf_chk(flag, format, args))
PRINTS(dprintf, stream_of_descriptor(fd), (int fd, const char *format, ...), vdprintf(fd, format, args))
PRINTS(__dprintf_chk, stream_of_descriptor(fd), (int fd, int flag, const char *format, ...),
       __vdprintf_chk(fd, flag, format, args))
LISTS(vfprintf, stream_of(file), (FILE * file, const char *format, va_list args), vfprintf(file, format, args))
LISTS(__vfprintf_chk, stream_of(file), (FILE * file, int flag, const char *format, va_list args),
      __vfprintf_chk(file, flag, format, args))
LISTS(vprintf, listen_to(OUT), (const char *format, va_list args), vprintf(format, args))
LISTS(__vprintf_chk, listen_to(OUT), (int flag, const char *format, va_list args), __vprintf_chk(flag, format, args))
LISTS(vdprintf, stream_of_descriptor(fd), (int fd, const char *format, va_list args), vdprintf(fd, format, args))
LISTS(__vdprintf_chk, stream_of_descriptor(fd), (int fd, int flag, const char *format, va_list args),
      __vdprintf_chk(fd, flag, format, args))

static void say_text(const FILE *file, const char *s, size_t n)
{
	int stream = stream_of(file);

	if (stream && n)
		said(stream, s, n);
}

static int words_puts(const char *s)
{
	say_text(stdout, s, strlen(s));
	say_text(stdout, "\n", 1);
	return puts(s);
}

#define TEXT(name)                                         \
	static int words_##name(const char *s, FILE *file) \
	{                                                  \
		say_text(file, s, strlen(s));              \
		return name(s, file);                      \
	}
#define BYTES(name)                                                                        \
	static size_t words_##name(const void *s, size_t size, size_t n, FILE *file)       \
	{                                                                                  \
		say_text(file, s, (size) * (n));                                           \
		return name(s, size, n, file);                                             \
	}
#define LETTER(name)                                     \
	static int words_##name(int letter, FILE *file)  \
	{                                                \
		say_text(file, &(char){(char)letter}, 1); \
		return name(letter, file);               \
	}
#define LETTER_OUT(name)                                   \
	static int words_##name(int letter)                \
	{                                                  \
		say_text(stdout, &(char){(char)letter}, 1); \
		return name(letter);                       \
	}
#undef putc			/* macros of some versions */
#undef putc_unlocked
#undef putchar
#undef putchar_unlocked
#undef fputc_unlocked
#undef fwrite_unlocked
#undef fputs_unlocked
TEXT(fputs)
TEXT(fputs_unlocked)
BYTES(fwrite)
BYTES(fwrite_unlocked)
LETTER(fputc)
LETTER(fputc_unlocked)
LETTER(putc)
LETTER(putc_unlocked)
LETTER(_IO_putc)
LETTER_OUT(putchar)
LETTER_OUT(putchar_unlocked)

static ssize_t words_write(int fd, const void *s, size_t n)
{
	int stream = stream_of_descriptor(fd);
	ssize_t written;

	if (likely(!stream))
		return write(fd, s, n);
	if (!said_before(stream, s, n))
		said(stream, s, n);
	written = write(fd, s, n);
	owe(stream, s, n, written);
	return written;
}

/* What is written again of these counts again: programs do not write lines in pieces and check how much of each was written. */
static ssize_t words_writev(int fd, const struct iovec *part, int n)
{
	int stream = stream_of_descriptor(fd);

	for (int i = 0; stream && i < n; i++)
		said(stream, part[i].iov_base, part[i].iov_len);
	return writev(fd, part, n);
}

#define WORDS(X) \
	X(fprintf) X(__fprintf_chk) X(printf) X(__printf_chk) X(dprintf) X(__dprintf_chk) X(vfprintf) \
	X(__vfprintf_chk) X(vprintf) X(__vprintf_chk) X(vdprintf) X(__vdprintf_chk) X(puts) X(fputs) \
	X(fputs_unlocked) X(fwrite) X(fwrite_unlocked) X(fputc) X(fputc_unlocked) X(putc) X(putc_unlocked) \
	X(_IO_putc) X(putchar) X(putchar_unlocked) X(write) X(writev)

static uint32_t redirect(void)
{
	static const struct elf_import list[] = {
#define X(name) {#name, (void *)name, (void *)words_##name},
		WORDS(X)
#undef X
	};
	struct elf_object driver;

	return elf_object_at(door(ENTRY_cuInit), &driver) ? elf_redirect(&driver, list, sizeof(list) / sizeof(list[0]))
							  : 0;
}

/* The driver's references stay redirected in a forked child that starts over; its words are its own. */
void words_start(void)
{
	static uint32_t redirected;

	if (words.generation == rec.generation || sandbox_is_new())
		return;
	words.table = chunk_new(CW_CHUNK_PRINTED, sizeof(*words.table), 0);
	words.generation = rec.generation;
	atomic_store(&words.unheard, 0);
	if (words.table && !redirected)
		redirected = redirect();
	if (words.table) {
		words.table->open[0].stream = OUT;
		words.table->open[1].stream = ERR;
		words.table->redirected = redirected;
	}
}
