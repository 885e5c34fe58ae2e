/* SPDX-License-Identifier: Apache-2.0
 * Failures that are described in a sentence (see complaint.h).
 */
#include "find/words/complaint.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "base/str.h"
#include "find/words/quoted.h"
#include "read/text/said.h"

#define SENTENCE_MAX	600
#define SENTENCE_WORDS	4	/* fewer are a label or a value of a log */

#define SUFFIX_MAX 8	/* "safetens…": longer ones are words of a name with dots */

/* "gpu.json", "cuda_12.yaml": the name of a user's file. A library's is not, nor is a module's, "torch.cuda.amp". */
static bool is_file_name(const char *name, size_t len)
{
	const char *dot = memrchr(name, '.', len);
	size_t n = dot ? len - (size_t)(dot + 1 - name) : 0;

	if (!n || n > SUFFIX_MAX || dot == name || memchr(name, '.', (size_t)(dot - name)))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)dot[1 + i]))
			return false;
	return !says_just(dot + 1, n, SAID_library_suffix);
}

/* "catboost/cuda/cuda_lib/cuda_manager.h:305": where a library's code says that it failed. */
static bool is_source_line(const char *name)
{
	const char *end = name + strcspn(name, " \n'\"`<>()[]=:");

	return *end == ':' && isdigit((unsigned char)end[1]) && says_in(name, (size_t)(end - name), SAID_source_file);
}

/* "acme/llama-cuda", "ckpt/gpu.pt", "https://…", 'gpu.json': names that people gave. Those of the system, "/dev/nvidia0", are the GPU's. */
static bool in_own_name(const char *s, const char *at)
{
	const char *from = at, *slash;

	while (from > s && !strchr(" \n'\"`<>()[]=", from[-1]))
		from--;
	if (from > s && strchr("'\"`", from[-1]) && from[strcspn(from, "\n'\"`")] == from[-1] &&
	    is_file_name(from, strcspn(from, "\n'\"`")))
		return true;
	slash = from + strcspn(from, " \n'\"`<>()[]=/\\");
	if ((*slash != '/' && *slash != '\\') || is_source_line(from))
		return false;
	return !says(from, SAID_system_path);
}

/* As words of their own, or the beginning of a name: "cuda:0", "CUDAGuard", "triton.compiler", not "chip" or "sgpu". */
bool names_gpu(const char *s)
{
	const char *after;

	for (const char *at = s; (at = says_on(s, at, SAID_gpu, &after)) != NULL; at++)
		if (!in_own_name(s, at))
			return true;
	return false;
}

/* "no error", "0 CUDA errors", "without any failure": up to two words before it. */
static bool is_denied(const char *s, const char *at)
{
	for (int words = 0; words < 3 && at > s; words++) {
		const char *end = at - 1;

		for (at = end; at > s && at[-1] != ' ';)
			at--;
		if (says_just(at, (size_t)(end - at), SAID_none))
			return true;
	}
	return false;
}

static bool has_trouble(const char *s)
{
	const char *after;

	for (const char *at = s; (at = says_on(s, at, SAID_trouble, &after)) != NULL; at++)
		if (!is_denied(s, at))
			return true;
	return false;
}

/* Words between spaces, most of which are letters alone: neither code nor a line of a table. */
bool is_prose(const char *s)
{
	size_t words = 0, plain = 0, first = strcspn(s, " ");

	if (!isalnum((unsigned char)s[0]) || s[first - 1] == ':')	/* a sign of a list or of a log, "train.py: error: …" */
		return false;
	while (*s) {
		size_t n = strcspn(s, " \t"), letters = 0;

		while (letters < n && (isalpha((unsigned char)s[letters]) || strchr("'-", s[letters])))
			letters++;
		words += n > 0;
		plain += n && (letters == n || (letters == n - 1 && strchr(",:;.!?)", s[letters])));
		s += n + (s[n] != '\0');
	}
	return plain >= SENTENCE_WORDS && plain * 2 > words;
}

/* Memory that grows is the GPU's, where people ask about GPUs. */
static bool is_about_gpu(const char *s)
{
	return says(s, SAID_about) || names_gpu(s);
}

bool says_i(const char *line)
{
	for (const char *s = line; *s;) {
		size_t n = strcspn(s, " \t,.:;!?()");

		if (says_just(s, n, SAID_of_oneself))
			return true;
		s += n + (s[n] != '\0');
	}
	return false;
}

bool complaint_in(const char *line)
{
	char sentence[SENTENCE_MAX];

	if (quoted_code(line) || quoted_item(line) || !is_about_gpu(line))
		return false;
	while (*(line += strspn(line, " .!?"))) {
		size_t n = 0;

		while (line[n] && !(strchr(".!?", line[n]) && (line[n + 1] == ' ' || !line[n + 1])))
			n++;
		str_copy(sentence, n < sizeof(sentence) ? n + 1 : sizeof(sentence), line);
		if (has_trouble(sentence) && is_prose(sentence) && !says(sentence, SAID_unreal))
			return true;
		line += n;
	}
	return false;
}
