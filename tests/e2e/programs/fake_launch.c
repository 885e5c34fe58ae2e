/* SPDX-License-Identifier: Apache-2.0
 * A launch without a Python frame: called by the thread that plays PyTorch's autograd engine. */
#include "../cases/cu.h"

static CUcontext context;
static CUfunction nop;

void prepare(void *c, void *f);
void prepare(void *c, void *f)
{
	context = c;
	nop = f;
}

int bad_launch(void);
int bad_launch(void)
{
	cuCtxSetCurrent(context);
	return cuLaunchKernel(nop, 1, 70000, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}
