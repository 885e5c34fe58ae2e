# SPDX-License-Identifier: Apache-2.0
# A thread dies of the error and the program ends with 0 all the same: a note.
# expect-note: cause=launch-config-block-limit exit=0
# needs: torch
import threading

import torch
from helpers.kernels import load


def work(kernel):
    x = torch.zeros(16, device="cuda")
    kernel(grid=(1, 1, 1), block=(4096, 1, 1), args=[x, 16])  # <- note


touch = load()
thread = threading.Thread(target=work, args=(touch,))
thread.start()
thread.join()
print("done")
