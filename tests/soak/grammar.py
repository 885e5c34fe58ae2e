# SPDX-License-Identifier: Apache-2.0
"""Programs made from a grammar: one seed, one program. The words are the steps of actor.c."""
import random

KILLS = ("program", "keeper", "supervisor", "group")
OPTIONS = ([], ["--no-core-dump"], ["--memory-trace"], ["--keep"], ["--hang-after", "60s"])
SIGNALS = (2, 6, 9, 11, 15)
BUILDS = ("plain",) * 6 + ("asan", "ubsan", "ubsan")


class Program:
    """The sentence, how it is started, and what may be expected of it."""

    def __init__(self, seed, kill=None):
        dice = self.dice = random.Random(seed)
        self.seed = seed
        self.small = dice.random() < 0.1    # a driver without locks: the only one that a program may jump out of
        self.options = dice.choice(OPTIONS)
        self.build = dice.choice(BUILDS)
        self.out = dice.random() < 0.5      # --out, or the usual folder
        self.text = dice.random() < 0.2     # the verdict in words, not as JSON
        self.closed = [fd for fd in (0, 2) if dice.random() < 0.05]
        self.files = dice.choice((0,) * 9 + (24,))      # limit on descriptors for cuwhy and the program
        self.kill = kill if kill is not None else dice.choice(KILLS) if dice.random() < 0.15 else ""
        self.kill_at = dice.random() * 1.1  # of the time that the program takes
        self.supervisor_dies = self.cannot_record = False
        self.ends = "well"                  # or "cuda": an error that the program does not handle; "other"
        self.words = self.sentence()

    def sentence(self):
        dice = self.dice
        words = [] if dice.random() < 0.1 else self.limits()
        words += ["cuda"]
        for _ in range(dice.randint(1, 6)):
            words += self.step(0)
        words += self.meddling() + ["state"] + self.end()
        return words

    def calls(self):
        dice, words = self.dice, []
        for _ in range(dice.randint(1, 4)):
            words += dice.choice((
                ["launch", str(dice.choice((1, 10, 300)))], ["bad-launch", str(dice.randint(1, 3))], ["oom", str(dice.randint(1, 5))],
                ["alloc", str(dice.choice((16, 256, 900)))], ["free", "1"], ["sync"]))
        return words

    def block(self, words):
        return ["{"] + words + ["}"]

    def child(self, depth):
        """A program of its own, in a process of its own."""
        words = ["cuda"] + self.calls()
        if depth < 2 and self.dice.random() < 0.5:
            words += self.step(depth + 1)
        return words + self.dice.choice(([], ["state"], ["exit", "4"], ["quick-exit", "5"], ["raise", "9"], ["die-oom"], ["die-launch"]))

    def step(self, depth):
        dice = self.dice
        choices = [
            (6, lambda: self.calls()),
            (4, lambda: ["threads", str(dice.choice((2, 8, 40)))] + self.block(self.calls())),
            (2, lambda: ["fork"] + self.block(self.calls() + dice.choice(([], ["exit", "3"], ["raise", "15"])))),
            (2, lambda: [dice.choice(("spawn", "vfork"))] + self.block(self.child(depth))),
            (1, lambda: ["daemon", str(dice.choice((0, 5, 50)))] + self.block(["cuda"] + self.calls())),
            (2, lambda: [dice.choice(("prof", "alarm")), str(dice.choice((100, 300, 1000)))] + self.block(self.timed())),
            (1, lambda: ["children", str(dice.randint(1, 20))]),
            (1, lambda: ["stop", str(dice.choice((0, 1, 10)))]),
            (1, lambda: ["dlopen", str(dice.randint(1, 4))]),
            (1, lambda: ["setenv"] + self.block(self.calls() * 3)),
            # with --hang-after, one of the descriptors is the driver's
            (1, lambda: ["close", "3"] if "--hang-after" not in self.options else self.calls()),
            (1, lambda: ["sleep", str(dice.randint(0, 30))]),
        ]
        if self.small:
            choices += [(8, lambda: ["jump", str(dice.choice((10, 200)))])]
        else:
            choices += [(1, lambda: ["spin", str(dice.randint(0, 5)), "sync"])]
        return dice.choices([c[1] for c in choices], [c[0] for c in choices])[0]()

    def timed(self):
        """What a timer may interrupt: long enough for it to do so."""
        words = self.calls() + ["launch", "2000", "sync"]
        return words + (["threads", "4"] + self.block(self.calls()) if self.dice.random() < 0.5 else [])

    def limits(self):
        kind = self.dice.choice(("", "", "", "", "files", "size", "memory"))
        self.cannot_record = kind in ("files", "size")
        return {"": [], "files": ["limit-files", str(self.dice.choice((5, 8, 16)))], "size": ["limit-size", "4096"],
                "memory": ["limit-memory", "6000"]}[kind]

    def meddling(self):
        kind = self.dice.choice(("",) * 12 + ("kill", "stop", "supervisor"))
        self.cannot_record = self.cannot_record or kind != ""
        self.supervisor_dies = kind == "supervisor"
        return {"": [], "kill": ["signal-keeper", "9"], "stop": ["signal-keeper", "19"],
                "supervisor": ["kill-supervisor"]}[kind] + (self.calls() if kind else [])

    def end(self):
        dice = self.dice
        words = ["loose", str(dice.randint(1, 3))] if dice.random() < 0.15 else []
        kind = dice.choice(("well", "well", "well", "status", "quick", "signal", "exec", "oom", "launch", "fault"))
        if kind == "fault" and self.small:
            kind = "oom"
        if kind == "launch" and self.small:
            kind = "status"
        self.ends = {"well": "well", "oom": "cuda", "launch": "cuda", "fault": "cuda"}.get(kind, "other")
        return words + {
            "well": ["exit", "0"], "status": ["exit", "3"], "quick": ["quick-exit", "7"], "signal": ["raise", str(dice.choice(SIGNALS))],
            "exec": ["exec"] + self.block(["cuda"] + self.calls() + ["state", "exit", "6"]),
            "oom": ["die-oom"], "launch": ["die-launch"], "fault": ["die-fault"]}[kind]
