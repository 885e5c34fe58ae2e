/* SPDX-License-Identifier: Apache-2.0
 * Failures that somebody tells in a sentence (see complaint.h).
 */
#include "find/words/complaint.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "base/str.h"
#include "find/words/quoted.h"

#define COUNT(list)	(sizeof(list) / sizeof((list)[0]))
#define SENTENCE_MAX	600
#define SENTENCE_WORDS	4	/* fewer are a label or a value of a log */

static const char *const gpu_words[] = {
#define MARK_GPU(words) words,
#include "kb/text_marks.def"
	NULL};

#define SUFFIX_MAX 8	/* "safetens…": longer ones are words of a name with dots */

/* "gpu.json", "cuda_12.yaml": the name of somebody's file. A library's is not, nor is a module's, "torch.cuda.amp". */
static bool is_file_name(const char *name, size_t len)
{
	static const char *const others[] = {"so", "dll", "dylib", "cu", "cuh", "h", "cpp", "cc", "jl"};
	const char *dot = memrchr(name, '.', len);
	size_t n = dot ? len - (size_t)(dot + 1 - name) : 0;

	if (!n || n > SUFFIX_MAX || dot == name || memchr(name, '.', (size_t)(dot - name)))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)dot[1 + i]))
			return false;
	for (size_t i = 0; i < COUNT(others); i++)
		if (strlen(others[i]) == n && !strncasecmp(dot + 1, others[i], n))
			return false;
	return true;
}

/* "catboost/cuda/cuda_lib/cuda_manager.h:305": where a library's code says that it failed. */
static bool is_source_line(const char *name)
{
	static const char *const ends[] = {".h", ".hpp", ".cuh", ".cu", ".cpp", ".cc", ".c", ".inl"};
	const char *end = name + strcspn(name, " \n'\"`<>()[]=:");

	for (size_t i = 0; i < COUNT(ends) && *end == ':' && isdigit((unsigned char)end[1]); i++)
		if ((size_t)(end - name) > strlen(ends[i]) && !strncmp(end - strlen(ends[i]), ends[i], strlen(ends[i])))
			return true;
	return false;
}

/* "acme/llama-cuda", "ckpt/gpu.pt", "https://…", 'gpu.json': names that people gave. Those of the system, "/dev/nvidia0", are the GPU's. */
static bool in_own_name(const char *s, const char *at)
{
	static const char *const system[] = {"/dev/", "/proc/", "/sys/", "/usr/", "/lib",
					     "/opt/", "/etc/",	"/run/", "/var/"};
	const char *from = at, *slash;

	while (from > s && !strchr(" \n'\"`<>()[]=", from[-1]))
		from--;
	if (from > s && strchr("'\"`", from[-1]) && from[strcspn(from, "\n'\"`")] == from[-1] &&
	    is_file_name(from, strcspn(from, "\n'\"`")))
		return true;
	slash = from + strcspn(from, " \n'\"`<>()[]=/\\");
	if ((*slash != '/' && *slash != '\\') || is_source_line(from))
		return false;
	for (size_t i = 0; i < COUNT(system); i++)
		if (str_starts(from, system[i]))
			return false;
	return true;
}

/* As words of their own, or the beginning of a name: "cuda:0", "CUDAGuard", "triton.compiler", not "chip" or "sgpu". */
bool names_gpu(const char *s)
{
	for (const char *const *word = gpu_words; *word; word++)
		for (const char *at = s; (at = str_find_case(at, *word)) != NULL; at++)
			if ((at == s || !isalpha((unsigned char)at[-1])) && !in_own_name(s, at))
				return true;
	return false;
}

static const char *const troubles[] = {
#define MARK_TROUBLE(words) words,
#include "kb/text_marks.def"
	NULL};

/* "no error", "0 CUDA errors", "without any failure": up to two words before it. */
static bool is_denied(const char *s, const char *at)
{
	static const char *const none[] = {"no", "0", "without", "zero"};

	for (int words = 0; words < 3 && at > s; words++) {
		const char *end = at - 1;

		for (at = end; at > s && at[-1] != ' ';)
			at--;
		for (size_t i = 0; i < COUNT(none); i++)
			if ((size_t)(end - at) == strlen(none[i]) && !strncasecmp(at, none[i], strlen(none[i])))
				return true;
	}
	return false;
}

static bool has_trouble(const char *s)
{
	for (const char *const *word = troubles; *word; word++)
		for (const char *at = s; (at = str_find_case(at, *word)) != NULL; at++)
			if ((at == s || !isalnum((unsigned char)at[-1])) && !is_denied(s, at))
				return true;
	return false;
}

/* "If you see CUDA errors, …" tells what may happen, "no CUDA errors" that it did not. */
static bool is_unreal(const char *s)
{
	static const char *const begins[] = {"if ", "when you ", "in case ", "to avoid ", "to prevent ", "how "};
	static const char *const has[] = {"no longer", "fixed", "no issue", " your ", "you "};	/* programs speak to "you" */

	for (size_t i = 0; i < COUNT(begins); i++)
		if (!strncasecmp(s, begins[i], strlen(begins[i])))
			return true;
	for (size_t i = 0; i < COUNT(has); i++)
		if (str_find_case(s, has[i]))
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

static const char *const abouts[] = {
#define MARK_ABOUT(words) words,
#include "kb/text_marks.def"
};

/* Memory that grows is the GPU's, where people ask about GPUs. */
static bool is_about_gpu(const char *s)
{
	for (size_t i = 0; i < COUNT(abouts); i++)
		if (strstr(s, abouts[i]))
			return true;
	return names_gpu(s);
}

bool says_i(const char *line)
{
	static const char *const words[] = {"I",  "I'm", "I've", "I'd", "my", "My",
					    "we", "We",	 "our",	 "Our", "me", NULL};

	for (const char *s = line; *s;) {
		size_t n = strcspn(s, " \t,.:;!?()");

		for (const char *const *word = words; *word; word++)
			if (strlen(*word) == n && !memcmp(s, *word, n))
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
		if (has_trouble(sentence) && is_prose(sentence) && !is_unreal(sentence))
			return true;
		line += n;
	}
	return false;
}
