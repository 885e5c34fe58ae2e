/* SPDX-License-Identifier: Apache-2.0
 * Pinned host memory and its limits, in words and as JSON (see memory_host.h).
 */
#include "cmd/memory_host.h"

#include <inttypes.h>

#include "input/recording/ram_json.h"
#include "base/json.h"
#include "rules/template.h"
#include "base/banned.h"

bool memory_host_used(const struct memory_host *h)
{
	return h->pinned || h->peak || h->ram;
}

static const char *bytes(char *to, size_t size, uint64_t v)
{
	if (v == RAM_UNKNOWN || v == RAM_UNLIMITED)
		return v == RAM_UNKNOWN ? "not known" : "no limit";
	return format_bytes(to, size, (double)v);
}

static void print_limits(FILE *out, const struct ram_state *r)
{
	char a[32], b[32];

	fprintf(out, "    RAM                     %s available of %s, when memory ran out\n", bytes(a, sizeof(a), r->available),
		bytes(b, sizeof(b), r->total));
	if (r->group_limit >= RAM_UNLIMITED)
		fprintf(out, "    container (cgroup)      %s\n", bytes(a, sizeof(a), r->group_limit));
	else
		fprintf(out, "    container (cgroup)      %s in use of %s\n", bytes(a, sizeof(a), r->group_used),
			bytes(b, sizeof(b), r->group_limit));
	fprintf(out, "    lock limit (ulimit -l)  %s\n", bytes(a, sizeof(a), r->lock_limit));
	if (r->wsl)
		fprintf(out, "    WSL                     half of the RAM may be pinned: %s\n",
			bytes(a, sizeof(a), r->total < RAM_UNLIMITED ? r->total / 2 : r->total));
}

void memory_host_print(FILE *out, const struct memory_host *h)
{
	char a[32], b[32];

	fprintf(out, "pinned host memory of process %" PRIu32 ": %s, at most %s\n", h->pid, bytes(a, sizeof(a), h->pinned),
		bytes(b, sizeof(b), h->peak));
	if (h->ram)
		print_limits(out, h->ram);
	putc('\n', out);
}

json_t *memory_host_json(const struct memory_host *h)
{
	return json_pack("{s:I, s:o, s:o, s:o}", "pid", (json_int_t)h->pid, "pinned", json_bytes(h->pinned), "peak",
			 json_bytes(h->peak), "ram", h->ram ? ram_to_json(h->ram) : json_null());
}
