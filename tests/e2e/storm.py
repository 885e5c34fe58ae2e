#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A storm of signals on a process at which `cuwhy explain --pid` looks all the time: storm.py [--build BUILD] [--signals N] [--threads N] [--plain]

Queued signals (SIGRTMIN and the next three) are counted, and their values added up; of SIGUSR1, SIGTERM, SIGCHLD and SIGURG one is outstanding at a time;
each alarm sets the next. They go to threads that run; others fall asleep again and again in calls that must not return early. Nothing may be
missing. --plain: without cuwhy."""
import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SIZE = 4096
PATIENCE = 20       # seconds until a signal of which one is outstanding counts as lost

TARGET = """
import ctypes, sys, threading
library = ctypes.CDLL(sys.argv[1])
assert library.storm_map(sys.argv[2].encode())
library.storm_receive()
runs = [threading.Thread(target=library.storm_spin) for _ in range(int(sys.argv[3]) - 1)]
sleeps = [threading.Thread(target=library.storm_sleep) for _ in range(2)]
for t in runs + sleeps:
    t.start()
print(" ".join(str(t) for t in [threading.main_thread().native_id] + [t.native_id for t in runs]), flush=True)
library.storm_spin()
for t in runs + sleeps:
    t.join()
"""

SENDER = """
import ctypes, json, sys
library = ctypes.CDLL(sys.argv[1])
assert library.storm_map(sys.argv[2].encode())
tids = [int(t) for t in sys.argv[5].split()]
lost, singles = ctypes.c_uint64(), ctypes.c_uint64()
library.storm_send.restype = ctypes.c_uint64
total = library.storm_send(int(sys.argv[4]), (ctypes.c_int * len(tids))(*tids), ctypes.c_uint(len(tids)), ctypes.c_uint64(int(sys.argv[3])),
                           ctypes.c_double(float(sys.argv[6])), ctypes.byref(lost), ctypes.byref(singles))
json.dump({"sum": total, "lost": lost.value, "singles": singles.value}, sys.stdout)
"""


def storm(cuwhy, library, signals, threads, folder, env=None):
    """What was sent and what came, with looks by `cuwhy` until all is sent; None: without."""
    path = os.path.join(folder, "counts")
    with open(path, "wb") as f:
        f.write(b"\0" * SIZE)
    here = ctypes.CDLL(library)
    assert here.storm_map(path.encode())
    here.storm_count.restype = ctypes.c_uint64
    count = lambda what: here.storm_count(what.encode())
    target = subprocess.Popen([sys.executable, "-c", TARGET, library, path, str(threads)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    tids = target.stdout.readline().strip()
    sender = subprocess.Popen([sys.executable, "-c", SENDER, library, path, str(signals), str(target.pid), tids, str(PATIENCE)], stdout=subprocess.PIPE,
                              text=True)
    told = {"signals": signals, "looks": 0, "stops": 0, "longest_stop_us": 0}
    while sender.poll() is None and target.poll() is None:
        if not cuwhy:
            time.sleep(0.1)
            continue
        run = subprocess.run([cuwhy, "explain", "--json", "--pid", str(target.pid), "--look", "100ms"], capture_output=True, text=True, env=env)
        live = json.loads(run.stdout).get("live", {}) if run.stdout else {}
        told["looks"] += live.get("looks", 0)
        told["stops"] += live.get("stops", 0)
        told["longest_stop_us"] = max(told["longest_stop_us"], live.get("longest_stop_us", 0))
    sent = json.loads(sender.communicate()[0])
    end = time.monotonic() + PATIENCE
    while count("queued") < signals and time.monotonic() < end:
        time.sleep(0.01)
    alarms, end = count("alarms"), time.monotonic() + PATIENCE
    while count("alarms") == alarms and time.monotonic() < end:
        time.sleep(0.01)
    told["alarms"], told["alarms_go_on"] = count("alarms"), count("alarms") > alarms
    here.storm_end()
    _, error = target.communicate(timeout=60)
    told.update(lost=signals - count("queued"), wrong_values=count("sum") != sent["sum"], singles=sent["singles"], singles_lost=sent["lost"],
                calls=count("calls"), calls_that_ended_early=count("early"), status=target.returncode, error=error)
    return told


def harmless(told):
    return not (told["lost"] or told["wrong_values"] or told["singles_lost"] or told["calls_that_ended_early"] or told["status"]) and told["alarms_go_on"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default=os.path.join(os.path.dirname(os.path.dirname(HERE)), "build"))
    parser.add_argument("--signals", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--plain", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cuwhy-storm-") as folder:
        library = os.path.join(folder, "storm.so")
        subprocess.run([os.environ.get("CC", "cc"), "-O1", "-shared", "-fPIC", "-o", library, os.path.join(HERE, "programs", "storm.c")], check=True)
        told = storm(None if given.plain else os.path.join(os.path.abspath(given.build), "cuwhy"), library, given.signals, given.threads, folder)
    print(json.dumps(told))
    return 0 if harmless(told) else 1


if __name__ == "__main__":
    sys.exit(main())
