/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy memory`: every GPU of this machine and who holds it.
 */
#include <errno.h>

#include "base/err.h"
#include "base/opt.h"
#include "cmd/cmd.h"
#include "cmd/memory_machine.h"
#include "base/banned.h"

static struct {
	bool json, help;
} given;

static const struct opt_usage usage = {
	"memory", "[options]",
	"Tells what every GPU of this machine has in use, and who holds it.",
	"The exit status is 0, or 2 when not everything could be asked for.\n",
};

static const struct opt options[] = {
	{"json", 0, NULL, "print one JSON object", &given.json, NULL},
	{"help", 'h', NULL, "print this", &given.help, NULL},
	{0},
};

int cmd_memory(int argc, char **argv)
{
	struct err e = {0};
	int first = opt_parse(&usage, options, argc, argv, &e);

	if (first >= 0 && given.help) {
		opt_help(stdout, &usage, options);
		return cmd_finish(EXIT_NOTHING);
	}
	if (first >= 0 && first < argc)
		first = err_set(&e, -EINVAL, "memory takes no '%s'", argv[first]);
	return first < 0 ? cmd_fail(stdout, given.json, &e, EXIT_TROUBLE) : memory_of_machine(given.json);
}
