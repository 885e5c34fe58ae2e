# SPDX-License-Identifier: Apache-2.0
# cuDSS lacks a kernel, goes on, and fails for another reason, which ends the program on the same line.
# expect-silent: exit=1
# uses: helpers/lookups.py
import cudrv
from helpers.lookups import HAVE, LACK, images, library


def factor(solver):
    solver.take_stock(*images(HAVE, LACK)), cudrv.alloc(1 << 20), solver.take_stock(*images(HAVE)), refuse()


def refuse():
    raise RuntimeError("the matrix is singular")


cudrv.init()
factor(library("libcudss.so.0"))
