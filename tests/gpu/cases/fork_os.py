# SPDX-License-Identifier: Apache-2.0
# The same with os.fork; the parent hands the child's failure on.
# expect: cause=fork-after-init certainty=certain,likely exit=1
# needs: torch
import os
import sys

import torch

torch.zeros(1, device="cuda")
pid = os.fork()
if pid == 0:
    y = torch.ones(2).to("cuda")  # <- here
    os._exit(0)
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status))
