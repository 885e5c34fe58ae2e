#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `cuwhy fit` says would make a program fit, with real PyTorch on the simulated GPU.

    tests/torch/remedies.py [--build build] [--torch FOLDER] [name…]

Each program can make the changes itself, when its first argument names them. `cuwhy fit` runs it without any, on a ladder of cards. Each change that it
tried is then made by the program on the smallest card of which it was said to fit, where it must run, and on the next smaller card, where it must
run out of memory. Each diff that it printed is applied with patch(1); the program as it is must fail on the card on which the edited one must run.
Without --torch, the wheel of check.py.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import json_page  # noqa: E402
import remedies_programs  # noqa: E402

CARDS = ["%dMiB" % (700 * 1.1 ** n) for n in range(37)]     # 0.7 to 21 GiB


def is_sure(card):
    """That it does not fit: not if libraries may do with less memory, or what grows takes longer than a run of ours."""
    return card["failure"] and all("first optimizer steps" in doubt for doubt in card["doubts"])


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.env = dict(os.environ, PYTHONPATH=options.torch, CUWHY_WRITES_MODE="")     # of `make`; where writes are real nothing is tried

    def cuwhy(self, *words):
        return subprocess.run([os.path.join(self.options.build, "cuwhy"), *words], env=self.env, cwd=self.folder, capture_output=True, text=True, check=False)

    def write(self, name):
        with open(os.path.join(self.folder, name + ".py"), "w", encoding="ascii") as out:
            out.write(remedies_programs.HEAD + remedies_programs.PROGRAMS[name].text)

    def fits(self, name, changes, card):
        """Does the program run there, with changes of its own?"""
        done = self.cuwhy("run", "--gpu", "sim:h200,memory=" + card.replace("MiB", "M"), "--", sys.executable, name + ".py", changes)
        assert done.returncode == 0 or "out of memory" in done.stderr, (name, changes, card, done.stdout, done.stderr)
        return done.returncode == 0

    def fit(self, name):
        """Whatever it edits, the file stays as it is."""
        path = os.path.join(self.folder, name + ".py")
        before = os.stat(path)
        done = self.cuwhy("fit", "--json", "--gpu", ",".join(CARDS), "--", sys.executable, name + ".py", "none")
        found = json.loads(done.stdout)
        assert "cards" in found, (name, done.stdout, done.stderr)
        flaws = list(json_page.flaws(found, "fit"))
        assert not flaws, (name, flaws)
        after = os.stat(path)
        assert (before.st_ino, before.st_mtime_ns, before.st_size) == (after.st_ino, after.st_mtime_ns, after.st_size), (name, "was changed")
        return found

    def confirm(self, name, changes, cards):
        """The smallest card on which it is said to fit, and the one below it."""
        fits = [card["gpu"] for card in cards if card["fits"]]
        if not fits:
            assert not self.fits(name, changes, cards[-1]["gpu"]), (name, changes, cards[-1]["gpu"], "fits")
            return "none"
        at = [card["gpu"] for card in cards].index(fits[0])
        assert fits == [card["gpu"] for card in cards[at:at + len(fits)]], (name, changes, fits)
        assert self.fits(name, changes, fits[0]), (name, changes, fits[0], "does not fit")
        below = cards[at - 1] if at else None
        if below and is_sure(below):
            assert not self.fits(name, changes, below["gpu"]), (name, changes, below, "fits")
        return fits[0]

    def check_patch(self, name, changes, patch):
        """Applied, the program runs where it did not."""
        path, edited = (os.path.join(self.folder, file) for file in (name + ".py", "edited.py"))
        assert patch["file"] == path, patch
        assert not self.fits(name, "none", patch["gpu"]), (name, changes, "fits as it is")
        done = subprocess.run(["patch", "-o", edited, path], input=patch["diff"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, (patch["diff"], done.stdout, done.stderr)
        assert self.fits("edited", "none", patch["gpu"]), (name, patch)
        changed = [line for line in patch["diff"].splitlines()[2:] if line[0] in "+-"]
        assert len(changed) <= 10, patch
        return "%s edited" % changes

    def check(self, name, program):
        self.write(name)
        found = self.fit(name)
        remedies = found.get("remedies", {"tried": [], "failed": "not one was tried"})
        assert not (program.tried or program.edited) or remedies["failed"] is None, (name, remedies["failed"], found)
        tried = {",".join(one["changes"]): one for one in remedies["tried"]}
        assert all(one["failed"] is None for one in tried.values()), (name, tried)
        assert set(program.tried) <= set(tried), (name, program.tried, set(tried))
        assert not set(program.never) & {change for one in tried for change in one.split(",")}, (name, set(tried))
        said = []
        if program.fits_as_it_is:
            said.append("as it is from %s" % self.confirm(name, "none", found["cards"]))
        assert all(any(words in one["words"] for one in tried.values()) for words in program.words), (name, [one["words"] for one in tried.values()])
        patches = {changes: one["patch"] for changes, one in tried.items() if "patch" in one}
        assert program.edited is None or set(program.edited) == set(patches), (name, program.edited, set(patches))
        said += [self.check_patch(name, changes, patch) for changes, patch in patches.items()]
        for changes in program.tried:
            said.append("%s from %s" % (changes, self.confirm(name, changes, tried[changes]["cards"])))
        return "; ".join(said)


def check_batches(bench):
    """The smaller batch is an edit where it is a number in the file, and a command where it is a word."""
    path, card, said = os.path.join(bench.folder, "batch.py"), "1300MiB", []
    for text, words in (("4096", []), ("int(sys.argv[2])", ["4096"])):
        with open(path, "w", encoding="ascii") as out:
            out.write(remedies_programs.BATCH % text)
        done = bench.cuwhy("fit", "--json", "--gpu", card, "--", sys.executable, "batch.py", "none", *words)
        batch, = json.loads(done.stdout)["remedies"]["batches"]
        assert batch["gpu"] == card and batch["of"] == 4096 and 0 < batch["size"] < 4096, batch
        if words:
            assert batch["command"] == " ".join([sys.executable, "batch.py", "none", str(batch["size"])]), batch
        else:
            subprocess.run(["patch", path], input=batch["patch"]["diff"], text=True, check=True, capture_output=True)
            assert bench.fits("batch", "none", card), batch
        said.append(str(batch["size"]))
    return "batches of %s instead of 4096" % " and ".join(said)


def check_refuted(bench):
    """A smaller batch with which it does not run is not offered, and that it does not is said."""
    shutil.copy(os.path.join(HERE, "remedies_sampling.py"), bench.folder)
    done = bench.cuwhy("fit", "--json", "--gpu", "6GiB", "--", sys.executable, "remedies_sampling.py")
    remedies = json.loads(done.stdout)["remedies"]
    one, = remedies["refuted"]
    assert not remedies["batches"] and one["gpu"] == "6GiB" and one["of"] == 48 and 0 < one["size"] < 48, remedies
    return "a batch of %d does not run" % one["size"]


def check_try(bench):
    """After a failure, the same on the GPU of the recording."""
    bench.write("edited_optimizer")
    card = "sim:h200,memory=2400M"
    words = [sys.executable, "edited_optimizer.py", "none"]
    failed = bench.cuwhy("run", "--gpu", card, "--out", "out", "--", *words)
    assert failed.returncode == 1 and "out of memory" in failed.stderr, failed.stderr
    done = bench.cuwhy("explain", "--json", "--try", "out", "--", *words)
    found = json.loads(done.stdout)
    flaws = list(json_page.flaws(found, "verdict"))
    assert done.returncode == 1 and not flaws, (flaws, done.stderr)
    tried = {",".join(one["changes"]): one for one in found["tried"]["remedies"]["tried"]}
    assert tried["foreach"]["cards"][0]["gpu"] == "2400MiB" and tried["foreach"]["patch"]["gpu"] == "2400MiB", tried
    assert bench.cuwhy("explain", "--try", "out", "--", *words).stdout.count("+++ b/edited_optimizer.py") == 1
    return "explain --try after %s" % found["cause"]


def check_real_writes(bench):
    """A program whose writes are real runs once, and a file in the folder of a job is not edited there either."""
    name = "job/edited_optimizer"
    os.mkdir(os.path.join(bench.folder, "job"))
    bench.write("edited_optimizer")
    os.rename(os.path.join(bench.folder, "edited_optimizer.py"), os.path.join(bench.folder, name + ".py"))
    bench.env["CUWHY_JOB"] = os.path.join(bench.folder, "job")
    assert any("patch" in one for one in bench.fit(name)["remedies"]["tried"])
    bench.env["CUWHY_WRITES_MODE"] = "real"
    assert "remedies" not in bench.fit(name)
    return "no edit where writes are real"


SAMPLE = ["large_optimizer", "edited_validation"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", help="folder that make has filled")
    parser.add_argument("--torch", help="folder with PyTorch")
    parser.add_argument("--sample", action="store_true", help="a few of them, quick enough for each commit")
    parser.add_argument("names", nargs="*", help="only these programs")
    options = parser.parse_args()
    options.names += SAMPLE if options.sample else []
    options.build = os.path.abspath(options.build)
    if not options.torch:
        import check
        options.torch, why = check.install("2.11.0")
        if not options.torch:
            print("remedies: SKIPPED: PyTorch cannot be installed: %s" % why)
            return 0
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        for name, program in remedies_programs.PROGRAMS.items():
            if not options.names or name in options.names:
                print("ok - remedies: %s: %s" % (name, bench.check(name, program) or "nothing applies"), flush=True)
        for name, check_one in (("batches", check_batches), ("refuted", check_refuted), ("try", check_try), ("writes", check_real_writes)):
            if not options.names or name in options.names:
                print("ok - remedies: %s" % check_one(bench), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
