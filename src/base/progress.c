/* SPDX-License-Identifier: Apache-2.0
 * The progress line (see progress.h).
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/progress.h"
#include "base/str.h"
#include "base/term.h"

#define TEXT_MAX	200
#define FIRST_US	999000
#define NEXT_US		200000
#define TAIL_COLUMNS	32	/* for our name, percent and seconds */
#define NS		1000000000u
#define CLEAR		"\r\033[K"

static struct {
	bool disabled, under_way;
	volatile sig_atomic_t shown;
	char text[TEXT_MAX];
	atomic_size_t len;		/* 0 while the text is being changed */
	atomic_uint_fast64_t done, total;
	uint64_t began_ns;
	struct sigaction before;
} line;

/* snprintf is not for signal handlers. */
static size_t append_number(char *to, uint64_t n)
{
	char digits[24];
	size_t len = 0, i;

	do
		digits[len++] = (char)('0' + n % 10);
	while (n /= 10);
	for (i = 0; i < len; i++)
		to[i] = digits[len - 1 - i];
	return len;
}

static size_t append_text(char *to, const char *text)
{
	size_t len = strlen(text);

	memcpy(to, text, len);
	return len;
}

static void draw_line(int number)
{
	uint64_t done = line.done, total = line.total;
	char out[TEXT_MAX + 64];
	size_t n = 0, len = line.len;
	int kept = errno;

	(void)number;
	if (!len)
		return;
	n += append_text(out + n, "\rcuwhy: ");
	memcpy(out + n, line.text, len);
	n += len;
	n += append_text(out + n, " ");
	if (total && done <= total) {
		n += append_number(out + n, (uint64_t)(100.0 * (double)done / (double)total));
		n += append_text(out + n, " %, ");
	}
	n += append_number(out + n, (proc_mono_ns() - line.began_ns) / NS);
	n += append_text(out + n, " s\033[K");
	line.shown = 1;
	if (write(STDERR_FILENO, out, n) < 0)
		line.shown = 0;
	errno = kept;
}

void progress_disable(void)
{
	line.disabled = true;
}

static bool line_wanted(void)
{
	const char *term = getenv("TERM");

	return !line.disabled && term && *term && strcmp(term, "dumb") != 0 && isatty(STDERR_FILENO) == 1;
}

__attribute__((format(printf, 1, 0))) static void set_line_text(const char *fmt, va_list ap)
{
	char text[TEXT_MAX];
	size_t len, most = (size_t)term_width(STDERR_FILENO) - TAIL_COLUMNS;

	vsnprintf(text, sizeof(text), fmt, ap);
	str_make_line(text);
	len = strlen(text);
	if (len > most) {
		len = most;
		while (len && (text[len] & 0xc0) == 0x80)
			len--;	/* never split a character */
	}
	line.len = 0;
	memcpy(line.text, text, len);
	line.len = len;
}

void progress_begin(const char *fmt, ...)
{
	struct itimerval timer = {.it_value = {.tv_usec = FIRST_US}, .it_interval = {.tv_usec = NEXT_US}};
	struct sigaction action = {.sa_handler = draw_line, .sa_flags = SA_RESTART};
	va_list ap;

	if (!line_wanted())
		return;
	line.done = line.total = 0;
	va_start(ap, fmt);
	set_line_text(fmt, ap);
	va_end(ap);
	if (line.under_way)
		return;
	line.began_ns = proc_mono_ns();
	line.under_way = sigaction(SIGALRM, &action, &line.before) == 0;
	if (line.under_way)
		setitimer(ITIMER_REAL, &timer, NULL);
}

void progress_total(uint64_t total)
{
	line.total = total;
}

void progress_add(uint64_t more)
{
	line.done += more;
}

void progress_at(uint64_t done)
{
	line.done = done;
}

void progress_end(void)
{
	struct itimerval none = {.it_interval = {0}};

	if (!line.under_way)
		return;
	setitimer(ITIMER_REAL, &none, NULL);
	line.len = 0;
	sigaction(SIGALRM, &line.before, NULL);
	line.under_way = false;
	if (line.shown && write(STDERR_FILENO, CLEAR, strlen(CLEAR)) < 0)
		return;
	line.shown = 0;
}
