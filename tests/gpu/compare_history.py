# SPDX-License-Identifier: Apache-2.0
"""Runs a program with PyTorch's memory history on, and writes its snapshot when an exception ends it.

    compare_history.py SNAPSHOT PROGRAM [ARGUMENT…]

As PyTorch documents it, with the recommended limit; the program itself is unchanged.
"""
import os
import runpy
import sys

import torch


def main():
    snapshot, program = sys.argv[1:3]
    sys.argv = sys.argv[2:]
    sys.path[0] = os.path.dirname(os.path.abspath(program))
    torch.cuda.memory._record_memory_history(max_entries=100000)
    try:
        runpy.run_path(program, run_name="__main__")
    except Exception:
        torch.cuda.memory._dump_snapshot(snapshot)
        raise


if __name__ == "__main__":
    main()
