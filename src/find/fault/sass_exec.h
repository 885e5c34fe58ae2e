/* SPDX-License-Identifier: Apache-2.0
 * What the instructions of sass_exec.c, sass_decide.c and sass_arith.c share. Only for these, sass_cell.c and what executes them (sass_run.c,
 * sass_line.c).
 */
#ifndef CUWHY_SASS_EXEC_H
#define CUWHY_SASS_EXEC_H

#include "find/fault/sass_cell.h"
#include "find/fault/sass_word.h"

#define CELL_ALWAYS 7	/* the predicate that holds */

/* An index is no address, whatever it was computed from. */
struct cell cell_without_base(struct cell c);
/* Part of a value that is in the register as it was loaded. */
struct cell cell_part(struct cell c, unsigned from, unsigned n);

struct cell cell_reg(const struct cell_state *s, bool uniform, int reg);
struct cell cell_constant(const struct cell_run *run, unsigned bank, uint64_t off);
/* `half`: 1 = the upper word of a pair. */
struct cell cell_source(const struct cell_run *run, const struct cell_state *s, const struct sass_source *from,
			unsigned half);
/* The second operand of comparisons and selections: bits 32 to 63; signs of floating point are cut off. */
bool cell_slot(const struct cell_run *run, const struct word *w, bool uniform, bool real, struct sass_source *to);

void cell_set_reg(struct cell_state *s, bool uniform, int reg, struct cell c);
void cell_set_predicate(struct cell_state *s, bool uniform, unsigned p, struct cell c);
/* Whatever the instruction writes is unknown. False when it might write anything. */
bool cell_forget(const struct cell_run *run, struct cell_state *s, const uint8_t *code);

double cell_float(uint32_t v);
double cell_flushed(double v, bool flush);

bool run_isetp(struct cell_run *run, struct cell_state *s, const struct word *w, bool uniform);
bool run_fsetp(struct cell_run *run, struct cell_state *s, const struct word *w, bool wide);
bool run_plop3(struct cell_state *s, const struct word *w, bool uniform);
bool run_p2r(struct cell_state *s, const struct word *w);
bool run_r2p(struct cell_state *s, const struct word *w);
bool run_sel(struct cell_run *run, struct cell_state *s, const struct word *w, bool uniform, bool real);
bool run_minmax(struct cell_run *run, struct cell_state *s, const struct word *w);
bool run_prmt(struct cell_run *run, struct cell_state *s, const struct word *w, bool uniform);

bool run_widen(struct cell_state *s, const struct word *w);
bool run_convert(struct cell_run *run, struct cell_state *s, const struct word *w);
bool run_abs(struct cell_run *run, struct cell_state *s, const struct word *w);
bool run_math(struct cell_run *run, struct cell_state *s, const struct sass_math *m, struct cell *result);
bool run_mad_high(struct cell_run *run, struct cell_state *s, const struct word *w);
bool run_lop3(struct cell_run *run, struct cell_state *s, const uint8_t *code, bool uniform);

#endif
