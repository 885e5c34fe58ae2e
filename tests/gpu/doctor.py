#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cuwhy doctor` on a real GPU: green, quick, and every fact equal to what nvidia-smi and PyTorch say.

    tests/gpu/doctor.py [--build build]        with a Python that has PyTorch
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import time

QUERY = "index,name,uuid,pci.bus_id,memory.total,driver_version,compute_mode,mig.mode.current,ecc.mode.current,persistence_mode,compute_cap"
MODES = {"Default": 0, "Exclusive_Thread": 1, "Prohibited": 2, "Exclusive_Process": 3}
SWITCH = {"Enabled": 1, "Disabled": 0}
TORCH = """
import json, torch
print(json.dumps({"version": torch.__version__, "cuda": torch.version.cuda, "archs": torch.cuda.get_arch_list(),
    "count": torch.cuda.device_count(), "capability": list(torch.cuda.get_device_capability(0)), "name": torch.cuda.get_device_name(0)}))
"""
failed = 0


def same(a, b, what):
    global failed
    failed += a != b
    print("%s - %s%s" % ("ok" if a == b else "not ok", what, "" if a == b else ": %r, expected %r" % (a, b)))


def smi():
    out = subprocess.run(["nvidia-smi", "--query-gpu=" + QUERY, "--format=csv,noheader,nounits"], capture_output=True, text=True,
                         check=True).stdout
    return [dict(zip(QUERY.split(","), [w.strip() for w in line.split(",")])) for line in out.strip().splitlines()]


def compare_gpu(mine, theirs):
    name = "GPU %s: " % theirs["index"]
    same(mine["name"], theirs["name"], name + "name")
    same(mine["uuid"], theirs["uuid"], name + "uuid")
    same(mine["pci"].lower(), theirs["pci.bus_id"].lower(), name + "place on the bus")
    same(mine["total"] // 2**20, int(theirs["memory.total"]), name + "MiB")
    same(mine["capability"], theirs["compute_cap"], name + "compute capability")
    same(mine["compute_mode"], MODES.get(theirs["compute_mode"]), name + "compute mode")
    same(mine["mig"], SWITCH.get(theirs["mig.mode.current"]), name + "MIG")
    same(mine["ecc"], SWITCH.get(theirs["ecc.mode.current"]), name + "ECC")
    same(mine["persistence"], SWITCH.get(theirs["persistence_mode"]), name + "persistence")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--build", default="build")
    build = options.parse_args().build
    if not shutil.which("nvidia-smi"):
        print("ok - # skipped: no nvidia-smi here")
        return 0
    began = time.monotonic()
    run = subprocess.run([os.path.join(build, "cuwhy"), "doctor", "--json", "--python", sys.executable], capture_output=True, text=True)
    seconds = time.monotonic() - began
    answer = json.loads(run.stdout)
    facts = answer["facts"]
    print("# %.2f s" % seconds)
    for c in answer["checks"]:
        print("# %-5s %-20s %s" % (c["status"], c["label"], c["text"]))
    same((run.returncode, answer["cause"]), (0, "none"), "green")
    same(seconds < 3, True, "in under 3 s")
    theirs = smi()
    same(len(answer["gpus"]), len(theirs), "number of GPUs")
    for a, b in zip(answer["gpus"], theirs):
        compare_gpu(a, b)
    same(facts["driver.release"], theirs[0]["driver_version"], "driver")
    torch = json.loads(subprocess.run([sys.executable, "-c", TORCH], capture_output=True, text=True, check=True).stdout)
    same(facts["torch.version"], torch["version"], "PyTorch")
    same(facts["torch.cuda"], torch["cuda"], "its CUDA version")
    same(facts["driver.devices"], torch["count"], "devices")
    same([a for a in torch["archs"] if a not in facts["torch.archs"].split()], [], "architectures that PyTorch lists and were not found")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
