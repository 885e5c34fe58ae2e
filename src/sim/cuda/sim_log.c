/* SPDX-License-Identifier: Apache-2.0
 * The driver's error log (callbacks, the last messages, CUDA_LOG_FILE) and error names. */
#include "sim/cuda/sim.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LOG_ENTRIES = 100, LOG_LINE = 288, LOG_CALLBACKS = 16 };

static struct {
	pthread_mutex_t lock;
	unsigned int count;		/* messages written so far; the buffer keeps the last ones */
	char lines[LOG_ENTRIES][LOG_LINE];
	struct { sim_log_fn fn; void *data; } callbacks[LOG_CALLBACKS];
} sim_logs = {.lock = PTHREAD_MUTEX_INITIALIZER};

const char *sim_error_name(int code)
{
	switch (code) {
#define CUDA_ERROR_ROW(number, driver, runtime, sticky, text) case number: return #driver;
#include "kb/cuda_errors.def"
#undef CUDA_ERROR_ROW
	}
	return "";
}

static const char *error_text(int code)
{
	switch (code) {
#define CUDA_ERROR_ROW(number, driver, runtime, sticky, text) case number: return text;
#include "kb/cuda_errors.def"
#undef CUDA_ERROR_ROW
	}
	return "";
}

/* The environment is read when the library is loaded: while calls fail, another thread may call setenv. */
static char log_path[PATH_MAX];

__attribute__((constructor)) static void read_environment(void)
{
	const char *path = getenv("CUDA_LOG_FILE");

	tzset();	/* localtime_r would read TZ the first time */
	if (path)
		snprintf(log_path, sizeof(log_path), "%s", path);
}

static void log_to_file(const char *line)
{
	const char *path = log_path;
	int fd;

	if (!*path)
		return;
	if (!strcmp(path, "stderr"))
		dprintf(STDERR_FILENO, "%s\n", line);
	else if (!strcmp(path, "stdout"))
		dprintf(STDOUT_FILENO, "%s\n", line);
	else if ((fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644)) >= 0) {
		dprintf(fd, "%s\n", line);
		close(fd);
	}
}

static void log_message(char *message)
{
	char line[LOG_LINE];
	struct timespec now;
	struct tm tm;
	sim_log_fn fn;
	void *data;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	snprintf(line, sizeof(line), "[%02d:%02d:%02d.%03ld][%lu][CUDA][E] %s", tm.tm_hour,
		 tm.tm_min, tm.tm_sec, now.tv_nsec / 1000000, (unsigned long)pthread_self(),
		 message);
	pthread_mutex_lock(&sim_logs.lock);
	memcpy(sim_logs.lines[sim_logs.count++ % LOG_ENTRIES], line, sizeof(line));
	log_to_file(line);
	pthread_mutex_unlock(&sim_logs.lock);
	for (int i = 0; i < LOG_CALLBACKS; i++) {
		pthread_mutex_lock(&sim_logs.lock);
		fn = sim_logs.callbacks[i].fn;
		data = sim_logs.callbacks[i].data;
		pthread_mutex_unlock(&sim_logs.lock);
		if (fn)		/* outside the lock: a callback may read the log */
			fn(data, 0, message, strlen(message));
	}
}

/* The log was added in CUDA 12.9, and a forked child must not touch its parent's locks. */
static bool log_exists(void)
{
	return sim.config.driver >= 12090 && atomic_load(&sim.state) != SIM_FORKED;
}

void sim_log(const char *format, ...)
{
	char message[224];
	va_list args;

	if (!log_exists())
		return;
	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	log_message(message);
}

void sim_log_returning(const char *name, int code)
{
	char message[192];

	if (!log_exists())
		return;
	snprintf(message, sizeof(message), "Returning %d (%s) from %s", code,
		 sim_error_name(code), name);
	log_message(message);
}

int sim_cuGetErrorName(int code, const char **name)
{
	if (!name)
		return SIM_INVALID_VALUE;
	*name = *sim_error_name(code) ? sim_error_name(code) : NULL;
	return *name ? 0 : SIM_INVALID_VALUE;
}

int sim_cuGetErrorString(int code, const char **text)
{
	if (!text)
		return SIM_INVALID_VALUE;
	*text = *sim_error_name(code) ? error_text(code) : NULL;
	return *text ? 0 : SIM_INVALID_VALUE;
}

int sim_cuLogsRegisterCallback(sim_log_fn function, void *data, void **handle)
{
	int code = SIM_OUT_OF_MEMORY;

	if (sim_config_load())
		return SIM_UNKNOWN;
	if (!log_exists())
		return SIM_NOT_SUPPORTED;
	if (!function)
		return SIM_INVALID_VALUE;
	pthread_mutex_lock(&sim_logs.lock);
	for (int i = 0; i < LOG_CALLBACKS && code; i++) {
		if (sim_logs.callbacks[i].fn)
			continue;
		sim_logs.callbacks[i].fn = function;
		sim_logs.callbacks[i].data = data;
		if (handle)
			*handle = &sim_logs.callbacks[i];
		code = 0;
	}
	pthread_mutex_unlock(&sim_logs.lock);
	return code;
}

int sim_cuLogsUnregisterCallback(void *handle)
{
	int code = SIM_INVALID_VALUE;

	pthread_mutex_lock(&sim_logs.lock);
	for (int i = 0; i < LOG_CALLBACKS; i++) {
		if (handle != &sim_logs.callbacks[i] || !sim_logs.callbacks[i].fn)
			continue;
		sim_logs.callbacks[i].fn = NULL;
		code = 0;
	}
	pthread_mutex_unlock(&sim_logs.lock);
	return code;
}

int sim_cuLogsCurrent(unsigned int *iterator, unsigned int flags)
{
	if (!iterator || flags)
		return SIM_INVALID_VALUE;
	pthread_mutex_lock(&sim_logs.lock);
	*iterator = sim_logs.count;
	pthread_mutex_unlock(&sim_logs.lock);
	return 0;
}

/* Oldest message to dump that has not been overwritten. */
static unsigned int first_to_dump(const unsigned int *iterator)
{
	unsigned int first = iterator ? *iterator : 0;

	if (first > sim_logs.count)
		first = sim_logs.count;
	if (sim_logs.count - first > LOG_ENTRIES)
		first = sim_logs.count - LOG_ENTRIES;
	return first;
}

int sim_cuLogsDumpToFile(unsigned int *iterator, const char *path, unsigned int flags)
{
	int fd;

	if (!path || flags)
		return SIM_INVALID_VALUE;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0)
		return SIM_OPERATING_SYSTEM;
	pthread_mutex_lock(&sim_logs.lock);
	for (unsigned int i = first_to_dump(iterator); i != sim_logs.count; i++)
		dprintf(fd, "%s\n", sim_logs.lines[i % LOG_ENTRIES]);
	if (iterator)
		*iterator = sim_logs.count;
	pthread_mutex_unlock(&sim_logs.lock);
	close(fd);
	return 0;
}

/* The newest messages that fit; if some do not, the first line says so. */
static size_t dump_locked(unsigned int first, char *buffer, size_t room)
{
	static const char missing[] = "The provided buffer is not large enough to hold all "
				      "messages. Some messages will be missing\n";
	size_t need = 1, used = 0;
	unsigned int i = sim_logs.count;

	while (i != first &&
	       need + strlen(sim_logs.lines[(i - 1) % LOG_ENTRIES]) + 1 + (i - 1 == first ? 0 : sizeof(missing)) <= room)
		need += strlen(sim_logs.lines[--i % LOG_ENTRIES]) + 1;
	if (i != first && sizeof(missing) <= room)
		used = (size_t)snprintf(buffer, room, "%s", missing);
	for (; i != sim_logs.count; i++)
		used += (size_t)snprintf(buffer + used, room - used, "%s\n",
					 sim_logs.lines[i % LOG_ENTRIES]);
	return used;
}

int sim_cuLogsDumpToMemory(unsigned int *iterator, char *buffer, size_t *size, unsigned int flags)
{
	size_t room;

	if (!buffer)
		sim_log("buffer cannot be NULL");
	if (!buffer || !size || !*size || flags)
		return SIM_INVALID_VALUE;
	room = *size;
	buffer[0] = '\0';
	pthread_mutex_lock(&sim_logs.lock);
	*size = dump_locked(first_to_dump(iterator), buffer, room);
	if (iterator)
		*iterator = sim_logs.count;
	pthread_mutex_unlock(&sim_logs.lock);
	return 0;
}
