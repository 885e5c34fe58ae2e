/* SPDX-License-Identifier: Apache-2.0
 * The table of commands, from commands.def.
 */
#include "cmd/cmd.h"

const struct cmd commands[] = {
#define COMMAND(name, args, summary) {#name, args, summary, cmd_##name, &name##_table},
#include "cmd/commands.def"
#undef COMMAND
};

const size_t commands_n = sizeof(commands) / sizeof(commands[0]);
