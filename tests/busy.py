# SPDX-License-Identifier: Apache-2.0
"""Keeps the processors busy: some tests compute, others wait for a process to hang, and nobody has to say which do. As many as there are
processors run in any case; more only while a processor has nothing to do, so on a machine that others use there are no more than those."""
import os
import threading
import time

PROCESSORS = len(os.sched_getaffinity(0))
EACH = 4            # at most so many at a time for each processor: tests that only wait need memory, too
LOOK = 0.25         # seconds from one look at the processors to the next
IDLE = 0.25         # of all processors: half of one of two


class Idle:
    """Which part of the processors' time was not used since the last look."""

    def __init__(self):
        self.before = self.look()

    @staticmethod
    def look():
        """(not used, all); None on a system that does not tell."""
        try:
            with open("/proc/stat", encoding="ascii") as stream:
                times = [int(word) for word in stream.readline().split()[1:9]]
        except (OSError, ValueError):
            return None
        return times[3] + times[4], sum(times)

    def share(self):
        now, before = self.look(), self.before
        self.before = now
        return (now[0] - before[0]) / max(1, now[1] - before[1]) if now and before else 0.0


class Gate:
    """Lets the next one start as soon as it may: `jobs` at a time, more if processors are idle, never more than `most`."""

    def __init__(self, jobs, most, look):
        self.jobs, self.most, self.look = max(1, jobs), max(1, jobs, most), look
        self.changed, self.running = threading.Condition(), 0
        self.idle, self.looked = Idle(), time.monotonic()

    def is_idle(self):
        if time.monotonic() - self.looked < self.look:
            return False
        self.looked = time.monotonic()
        return self.idle.share() > IDLE

    def enter(self):
        with self.changed:
            while self.running >= self.jobs and not (self.running < self.most and self.is_idle()):
                self.changed.wait(self.look)
            self.running += 1

    def leave(self):
        with self.changed:
            self.running -= 1
            self.changed.notify_all()


def run(tasks, jobs, most, look=LOOK):
    """Calls every task in a thread, and starts them in this order. What a task raises is raised here, at the end."""
    gate, raised, threads = Gate(jobs, most, look), [], []

    def one(task):
        try:
            task()
        except BaseException as error:
            raised.append(error)
        finally:
            gate.leave()

    for task in tasks:
        gate.enter()
        threads.append(threading.Thread(target=one, args=(task,)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]
