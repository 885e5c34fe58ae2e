# SPDX-License-Identifier: Apache-2.0
"""Cells of a notebook, run by IPython itself: the magics, and what a cell with an error leaves."""
import torch
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()


def cell(text):
    print("-- %s" % text.splitlines()[0], flush=True)
    result = shell.run_cell(text)
    print("-- %s" % ("ok" if result.success else "failed: %s" % type(result.error_in_exec or result.error_before_exec).__name__), flush=True)


cell("%load_ext cuwhy")
cell("import torch, cuwhy\ncuwhy.enable()")
cell("%memory")
cell("%%memory\nkept = torch.empty(64 << 20, dtype=torch.uint8, device='cuda')\ngone = torch.empty(32 << 20, dtype=torch.uint8, device='cuda')\n"
     "del gone\nlen('a result')")
cell("%%cuwhy\nkept.numel()")
cell("%%cuwhy\nhuge = torch.empty(1 << 44, dtype=torch.uint8, device='cuda')")
cell("%%cuwhy\nkept.no_such_name")
cell("%%memory with words\n1")
cell("%unload_ext cuwhy")
cell("%%cuwhy\n1")
