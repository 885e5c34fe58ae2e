/* SPDX-License-Identifier: Apache-2.0
 * Workspaces: a model, not a measurement. cuSOLVER documents no sizes; these are what LAPACK's routines of the same names take
 * (optimal LWORK in its documentation), with one block size for all. Batched routines take as much for each matrix.
 */
#include "sim/cusolver/solver.h"

enum { BLOCK = 64 };

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t work_of_one(const struct solver_size *s)
{
	int64_t m = s->m, n = s->n, low = smaller(m, n), high = larger(m, n);

	switch (s->routine) {
	case GETRF:
	case ORMQR:
		return BLOCK * high;
	case GEQRF:
	case ORGQR:
	case POTRF:
	case SYTRF:
		return BLOCK * n;
	case SYEVD:	/* DSYEVD: 1 + 6n + 2n², or 2n + 1 without vectors, and the blocks of the reduction */
		return s->vectors ? 1 + 6 * n + 2 * n * n : 2 * n + 1 + BLOCK * n;
	case SYEVJ:	/* Jacobi: a copy of the matrix, and its rotations */
		return n * n + BLOCK * n;
	case GESVD:	/* DGESVD: max(3 min + max, 5 min), and the blocks of the bidiagonalization */
		return larger(3 * low + high, 5 * low) + BLOCK * (m + n);
	case GESVDJ:	/* Jacobi: copies of the matrix and of the smaller side's vectors */
		return m * n + low * low + BLOCK * high;
	case GESVDA:	/* through the eigenvalues of AᵀA */
		return 2 * n * n + m * n + 6 * n;
	case GEEV:	/* DGEEV: 4n with vectors, and the blocks of the reduction to Hessenberg form; the matrix is kept */
		return 4 * n + BLOCK * n + n * n;
	}
	return 0;
}

int64_t solver_work(const struct solver_size *s)
{
	/* PyTorch divides by it in no place, but cuSOLVER never answers 0 */
	return larger(1, work_of_one(s)) * larger(1, s->batch);
}
