# SPDX-License-Identifier: Apache-2.0
# docs/examples/fall_back_to_cpu.py on a card of 12 GB: no smaller batch helps, and it goes on with the CPU.
# expect-note: cause=oom-request-too-large exit=0
# needs: torch
# gpu: sim:rtx3060
import os
import runpy
import sys

root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path.insert(0, os.path.join(root, "python"))

names = runpy.run_path(os.path.join(root, "docs", "examples", "fall_back_to_cpu.py"))
assert names["where"] == "CPU" and len(names["found"]) == len(names["points"])
assert names["verdict"].cause == "oom-request-too-large" and names["verdict"].retry is False
