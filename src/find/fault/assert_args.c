/* SPDX-License-Identifier: Apache-2.0
 * The arguments of an assertion (see assert_args.h) are constants: they are read from the straight line of code before the call.
 */
#include "find/fault/assert_args.h"

#include "formats/image.h"
#include "find/fault/sass_line.h"
#include "find/fault/sass_move.h"

/* Where the arguments are: from register 4 on, by size. */
static const struct {
	uint8_t reg;
	bool pair;
} place[ASSERT_ARGS] = {
	[ASSERT_MESSAGE] = {4, true}, [ASSERT_FILE] = {6, true}, [ASSERT_LINE] = {8, false},
	[ASSERT_FUNCTION] = {10, true},
};

static bool is_call(struct bytes image, unsigned arch, uint64_t pc)
{
	const uint8_t *code = image_code(image, pc, SASS_BYTES);
	struct image_function in;
	uint64_t target;

	return code && sass_step(code, arch, pc, &target) == SASS_STEP_CALL && image_find(image, pc, &in);
}

bool assert_args_find(struct bytes image, unsigned arch, uint64_t back, struct assert_args *args)
{
	struct sass_line *line;

	*args = (struct assert_args){.known = {false}};
	if (back < SASS_BYTES || !is_call(image, arch, back - SASS_BYTES))
		return false;
	line = sass_line_open(image, arch, back - SASS_BYTES);
	for (size_t i = 0; line && i < ASSERT_ARGS; i++) {
		args->known[i] = sass_line_constant(line, place[i].reg, place[i].pair, &args->value[i]);
		args->value[i] = args->known[i] ? args->value[i] : 0;
	}
	sass_line_close(line);
	return true;
}
