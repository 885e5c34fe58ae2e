# SPDX-License-Identifier: Apache-2.0
# Another process has most of the card.
# expect: cause=oom-other-process certainty=certain,likely exit=1
# needs: torch
# alone
import subprocess
import sys

import torch

HOLD = """
import sys, torch
free, _ = torch.cuda.mem_get_info()
x = torch.empty(free - (20 << 30), dtype=torch.uint8, device="cuda")
print("ready", flush=True)
sys.stdin.read()
"""
holder = subprocess.Popen([sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
holder.stdout.readline()
try:
    x = torch.empty(30 << 30, dtype=torch.uint8, device="cuda")  # <- here
finally:
    holder.stdin.close()
    holder.wait()
