/* SPDX-License-Identifier: Apache-2.0
 * Versions that a text mentions: of the driver, of CUDA, of PyTorch and what it was built for.
 */
#include "find/words/env.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "read/text/said.h"

/* The version that begins here or after a few characters: "v470.57", " : 12.1". */
static size_t version_at(const char *s, char *to, size_t size)
{
	size_t n;

	s += strspn(s, " :=v\"'(");
	n = strspn(s, "0123456789.");
	while (n && s[n - 1] == '.')
		n--;
	if (!n || n >= size || !isdigit((unsigned char)*s))
		return 0;
	memcpy(to, s, n);
	to[n] = '\0';
	return n;
}

/* "12.4" -> 12040. 0 when it is not a version. */
static int cuda_number(const char *s)
{
	char version[16], *end;
	long major, minor = 0;

	if (!version_at(s, version, sizeof(version)))
		return 0;
	major = strtol(version, &end, 10);
	if (*end == '.')
		minor = strtol(end + 1, NULL, 10);
	return major >= 5 && major < 40 && minor < 30 ? (int)(major * 1000 + minor * 10) : 0;
}

static void read_driver(struct text_env *e, const char *s)
{
	char version[32];
	const char *at;

	for (size_t row = 0; !e->driver[0] && (at = says_before(s, SAID_driver, &row)) != NULL;)
		if (version_at(at, version, sizeof(version)) >= 3 && strtol(version, NULL, 10) >= 300 &&
		    strtol(version, NULL, 10) < 2000)
			str_copy(e->driver, sizeof(e->driver), version);
}

/* The first of these words that a CUDA version follows; 0: none. */
static int cuda_after(const char *s, enum said_list words)
{
	const char *at;
	int cuda = 0;

	for (size_t row = 0; !cuda && (at = says_before(s, words, &row)) != NULL;)
		cuda = cuda_number(at);
	return cuda;
}

static void read_cuda(struct text_env *e, const char *s)
{
	int driver = cuda_after(s, SAID_driver_cuda), torch = cuda_after(s, SAID_torch_cuda);
	const char *at, *from;

	if (says_at(s, SAID_driver_number, &at))
		e->driver_cuda = (int)strtol(at, NULL, 10);
	e->driver_cuda = driver ? driver : e->driver_cuda;
	e->torch_cuda = torch ? torch : e->torch_cuda;
	if (says_at(s, SAID_nvcc, &at) || (!e->nvcc[0] && says_at(s, SAID_nvcc_said, &at) && cuda_number(at)))
		version_at(at, e->nvcc, sizeof(e->nvcc));
	for (from = s; !e->cuda && (from = says_on(s, from, SAID_some_cuda, &at)) != NULL; from++)
		e->cuda = cuda_number(at - 1);
}

/* "2.7.0.dev20250310+cu124" */
static size_t torch_version_length(const char *s)
{
	size_t n = 0;

	while (isalnum((unsigned char)s[n]) || s[n] == '.' || s[n] == '+')
		n++;
	while (n && s[n - 1] == '.')
		n--;
	return n;
}

static void set_torch(struct text_env *e, const char *s)
{
	const char *cu;
	size_t n;

	s += strspn(s, " :=v\"'-");
	n = torch_version_length(s);
	if (n < 3 || n >= sizeof(e->torch) || !isdigit((unsigned char)s[0]) || s[1] != '.' || strtol(s, NULL, 10) > 3)
		return;
	memcpy(e->torch, s, n);
	e->torch[n] = '\0';
	cu = strstr(e->torch, "+cu");
	if (cu && isdigit((unsigned char)cu[3]) && isdigit((unsigned char)cu[4])) {
		long all = strtol(cu + 3, NULL, 10);

		if (all >= 75 && all < 400)
			e->torch_cuda = (int)(all / 10 * 1000 + all % 10 * 10);
	}
}

static void read_torch(struct text_env *e, const char *s)
{
	const char *at;

	for (size_t row = 0; !e->torch[0] && (at = says_before(s, SAID_torch, &row)) != NULL;)
		set_torch(e, at);
	if (!e->torch[0] && (e->asked_version || ((s[0] == '\'' || s[0] == '"') && says(s, SAID_local_version))))	/* the answer to torch.__version__ */
		set_torch(e, s);
	e->asked_version = says(s, SAID_torch_version);
	if (!e->torch_cuda && says_at(s, SAID_torch_tag, &at)) {
		long all = strtol(at, NULL, 10);

		if (all >= 90 && all < 400)
			e->torch_cuda = (int)(all / 10 * 1000 + all % 10 * 10);
	}
}

void env_read_versions(struct text_env *e, const char *s)
{
	read_driver(e, s);
	read_cuda(e, s);
	read_torch(e, s);
}
