#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the parts of `make check` beside each other: parts.py FOLDER check-e2e check-text…, from the Makefile.

As many at a time as there are processors (or as `make -j` says), and more while processors have nothing to do. What a part prints goes to
FOLDER/NAME.log and is shown whole when it has ended, so that parts do not write into each other's lines; what is at work is told now and then.
All parts run, also after a failure: who waited for the check wants to know all that is wrong. The first in the list begin first: give the
longest ones first."""
import os
import re
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import busy  # noqa: E402

TOLD_EVERY = 60     # seconds without a line of output, if nobody looks on; CI systems end jobs that are silent for long
SEEN_EVERY = 10     # on a terminal
IDLE_FOR = 3        # seconds that processors were idle before one more part begins: the others may just have begun


def flags():
    """(the flags of make without its jobserver, so many at a time or None)"""
    given = os.environ.get("MAKEFLAGS", "")
    at_a_time = re.search(r"(?:^|\s)-j(\d*)(?=\s|$)", given)
    given = re.sub(r"(?:^|\s)(?:-j\d*|--jobserver\S*)(?=\s|$)", "", given)
    jobs = int(at_a_time.group(1)) if at_a_time and at_a_time.group(1) else None
    return given, jobs


class Check:
    """The parts that run, and what became of those that ended."""

    def __init__(self, folder, names):
        self.folder, self.names = folder, names
        self.flags, self.jobs = flags()
        self.lock, self.running, self.ended, self.failed, self.took = threading.Lock(), {}, 0, [], {}
        self.began = self.told = time.monotonic()
        os.makedirs(folder, exist_ok=True)

    def log_of(self, name):
        return os.path.join(self.folder, name + ".log")

    def run_part(self, name):
        with self.lock:
            self.running[name] = began = time.monotonic()
        with open(self.log_of(name), "wb") as log:
            part = subprocess.Popen(self.command(name), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                    env=dict(os.environ, MAKEFLAGS=self.flags))
            _, status, used = os.wait4(part.pid, 0)
            part.returncode = os.waitstatus_to_exitcode(status)
        with self.lock:
            del self.running[name]
            self.ended += 1
            self.took[name] = used.ru_utime + used.ru_stime, time.monotonic() - began
            if status:
                self.failed.append(name)
            self.show(name, "%d s, %d s of processor time%s (%d of %d)" % (
                time.monotonic() - began, used.ru_utime + used.ru_stime, ", FAILED" if status else "", self.ended, len(self.names)))

    @staticmethod
    def command(name):
        """What they need was built before: no part builds a program that another one runs."""
        return [os.environ.get("MAKE", "make"), "--no-print-directory", "-o", "parts", "BUILT_BEFORE=1", name]

    def show(self, name, how):
        say("---- %s: %s" % (name, how))
        with open(self.log_of(name), "rb") as log:
            sys.stdout.buffer.write(log.read())
        sys.stdout.buffer.flush()
        self.told = time.monotonic()

    def last_line(self, name):
        with open(self.log_of(name), "rb") as log:
            log.seek(max(0, os.path.getsize(log.name) - 300))
            lines = log.read().decode("utf-8", "replace").splitlines()
        return lines[-1].strip()[:80] if lines else ""

    def tell(self, ended):
        """That it goes on, and where it is."""
        every = SEEN_EVERY if sys.stdout.isatty() else TOLD_EVERY
        while not ended.wait(1):
            with self.lock:
                if self.running and time.monotonic() - self.told >= every:
                    say("---- %d s, at work: %s" % (time.monotonic() - self.began, "; ".join(
                        "%s (%s)" % (name, self.last_line(name)) for name in self.running)))
                    self.told = time.monotonic()

    def show_times(self):
        """Where the time went: what to make quicker, and what to begin first."""
        say("---- seconds of the processor, and from begin to end:")
        for name, (used, took) in sorted(self.took.items(), key=lambda row: -row[1][0]):
            say("     %-20s %6.0f %6.0f" % (name, used, took))

    def run(self):
        jobs = self.jobs or busy.PROCESSORS
        ended = threading.Event()
        threading.Thread(target=self.tell, args=(ended,), daemon=True).start()
        try:
            # one more than processors: a part that waits, or has only its longest test left, must not leave a processor idle
            busy.run([lambda name=name: self.run_part(name) for name in self.names], jobs, jobs if self.jobs else jobs + 1, IDLE_FOR)
        finally:
            ended.set()
        self.show_times()
        say("---- %d of %d parts in %d s, %d s of processor time%s" % (
            self.ended, len(self.names), time.monotonic() - self.began, sum(used for used, _ in self.took.values()),
            "; FAILED: " + ", ".join("%s (%s)" % (name, self.log_of(name)) for name in self.failed) if self.failed else ""))
        return 1 if self.failed else 0


def say(text):
    print(text, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(Check(sys.argv[1], sys.argv[2:]).run())
    except KeyboardInterrupt:   # the parts have got it, too
        sys.exit(130)
