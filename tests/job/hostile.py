# SPDX-License-Identifier: Apache-2.0
"""Job folders that others tampered with, and file systems that fail: hostile.py CUWHY INJECT [NAME]. `cuwhy explain` and `cuwhy report` must answer from what is
sound, write nothing anywhere, follow no link, and print nothing that controls a terminal."""
import json
import os
import pickle
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import histories  # noqa: E402
from world import World  # noqa: E402

RANKS = 16


class Bomb:
    """A pickle that would run a command."""

    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


def snapshot(folder):
    found = {}
    for top, dirs, names in os.walk(folder):
        for name in dirs + names:
            path = os.path.join(top, name)
            st = os.lstat(path)
            found[path] = (st.st_mode, st.st_size, st.st_mtime_ns)
    return found


class Check:
    def __init__(self, cuwhy, inject):
        self.cuwhy, self.inject, self.wrong = cuwhy, inject, 0
        self.only = sys.argv[3] if len(sys.argv) > 3 else None
        self.home = tempfile.mkdtemp(prefix="cuwhy-hostile-")

    def make(self, name):
        folder = os.path.join(self.home, name)
        w = World(7, ranks=RANKS, per_node=4)
        w.folder = folder
        expect = histories.fault(w)
        w.write(folder)
        return folder, os.path.join(folder, "job-4711", "attempt-0"), expect.first

    def ask(self, *words, env=None):
        return subprocess.run([self.cuwhy, "explain", *words], capture_output=True, timeout=300, check=False, env=dict(os.environ, HOME=self.home, **(env or {})))

    def say(self, name, problems):
        self.wrong += bool(problems)
        print("%s %s%s" % ("FAIL" if problems else "ok  ", name, ": " + "; ".join(problems) if problems else ""), flush=True)

    def try_folder(self, name, tamper, env=None, first=True, **also):
        """The answer must be the same, or at least be one, and nothing may change."""
        if self.only not in (None, name):
            return
        folder, where, expect = self.make(name)
        tamper(where)
        before = snapshot(self.home)
        done = self.ask(folder, "--json", env=env)
        text = self.ask(folder, env=env)
        page = self.page(folder, env)
        problems = []
        if snapshot(self.home) != before:
            problems.append("something was written")
        try:
            got = json.loads(done.stdout)
        except ValueError:
            got = {}
            problems.append("no JSON, status %d: %s" % (done.returncode, done.stderr[-200:]))
        if got and first and [x["rank"] for x in got["first"]] != expect:
            problems.append("first is %s, not %s" % ([x["rank"] for x in got["first"]], expect))
        for key, value in also.items():
            if got and got.get(key) != value:
                problems.append("%s is %s, not %s" % (key, got.get(key), value))
        if any(b < 32 and b != 10 for b in text.stdout + text.stderr) or b"\x7f" in text.stdout:
            problems.append("control bytes in the text")
        if got and (page is None or len(page["ranks"]) != len(got["ranks"]) or page["title"] != got["title"]):
            problems.append("the page tells something else")
        if b"secret" in json.dumps(page).encode():
            problems.append("the page has what lies elsewhere")
        self.say(name, problems)

    def page(self, folder, env):
        """The data of the report page."""
        done = subprocess.run([self.cuwhy, "report", "-o", "-", folder], capture_output=True, timeout=60, check=False, env=dict(os.environ, HOME=self.home, **(env or {})))
        parts = done.stdout.decode().split('id="cuwhy-data">')
        return json.loads(parts[1].split("</script>")[0])["job"] if len(parts) == 2 else None


def put(name, data):
    def tamper(where):
        with open(os.path.join(where, name), "wb") as f:
            f.write(data)
    return tamper


def huge(where):
    with open(os.path.join(where, "rank-99.big.1.json"), "wb") as f:
        f.truncate(1 << 40)


def links(where):
    os.symlink("/etc/passwd", os.path.join(where, "rank-100.link.1.json"))
    os.symlink(where, os.path.join(os.path.dirname(where), "attempt-7"))
    os.mkfifo(os.path.join(where, "rank-101.pipe.1.json"))
    os.mkdir(os.path.join(where, "rank-102.folder.1.json"))


def other_user(where):
    path = os.path.join(where, "rank-103.planted.1.json")
    shutil.copy(os.path.join(where, sorted(os.listdir(where))[0]), path)
    os.chown(path, 4242, 4242)


def partial(where):
    for name in sorted(os.listdir(where)):
        if name.startswith("rank-2."):
            path = os.path.join(where, name)
            with open(path, "r+b") as f:
                f.truncate(os.path.getsize(path) // 2)


def names(where):
    os.rename(os.path.join(where, next(n for n in os.listdir(where) if n.startswith("rank-1."))), os.path.join(where, "rank-1.\x1b[2J\nx.1.json"))
    path = os.path.join(where, next(n for n in os.listdir(where) if n.startswith("rank-2.")))
    with open(path, encoding="utf-8") as f:
        o = json.load(f)
    o.update(node="\x1b]0;owned\x07", title="\x1b[2J", of_peers="\x1b[31m\u202egone", command="\x9b")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(o, f)


def forged_numbers(where):
    o = {"cuwhy_job": 1, "attempt": 0, "rank": 4294967294, "world": 4294967294, "state": "ended", "signal": 99999, "exit": -5,
         "pid": -1, "started_ns": 2**63 - 1, "node": "f", "boot": "f",
         "comms": [{"id": "c0ffee0123456789", "called": 2**62, "done": 2**62, "marks": [{"seq": 1, "in_ns": 2**63 - 1, "out_ns": 2**63 - 1}]},
                   {"id": "x", "called": 1, "done": 5}]}
    put("rank-9.f.1.json", json.dumps(o).encode())(where)


def verdicts(where):
    """Verdicts that lie elsewhere: above the folder, behind a link, another user's."""
    secret = json.dumps({"cause": "x", "title": "secret", "why": ["secret"]})
    outside = os.path.join(where, "..", "..", "..", "x.verdict.json")
    for path in (outside, os.path.join(where, "rank-3.planted.verdict.json")):
        with open(path, "w", encoding="utf-8") as f:
            f.write(secret)
    if os.geteuid() == 0:
        os.chown(os.path.join(where, "rank-3.planted.verdict.json"), 4242, 4242)
    else:
        os.unlink(os.path.join(where, "rank-3.planted.verdict.json"))
    os.symlink(outside, os.path.join(where, "rank-2.link.verdict.json"))
    for rank, verdict in ((1, "../../../x.verdict.json"), (2, "rank-2.link.verdict.json"), (3, "rank-3.planted.verdict.json"), (4, outside)):
        path = os.path.join(where, next(n for n in os.listdir(where) if n.startswith("rank-%d.n" % rank)))
        with open(path, encoding="utf-8") as f:
            o = json.load(f)
        with open(path, "w", encoding="utf-8") as f:
            json.dump(dict(o, verdict=verdict), f)


def writes(check, error):
    """`cuwhy run --job` on a folder that cannot be written to, or only the second time: the program ends as it would."""
    folder = os.path.join(check.home, "run-" + error)
    env = dict(os.environ, HOME=check.home, LD_PRELOAD=check.inject, INJECT_WRITE=error, RANK="0", WORLD_SIZE="1", CUWHY_JOB_ID="j")
    done = subprocess.run([check.cuwhy, "run", "--job", folder, "sh", "-c", "echo 1; exit 7"], capture_output=True, timeout=300, check=False, env=env)
    left = [name for _, _, names_ in os.walk(folder) for name in names_]
    if (done.returncode, done.stdout) != (7, b"1\n"):
        yield "the program: %s" % done
    if error == "ENOSPC" and (left or b"No space left" not in done.stderr):
        yield "left %s, said %s" % (left, done.stderr)
    if error == "ESTALE" and (len(left) != 1 or b"job folder" in done.stderr):
        yield "left %s, said %s" % (left, done.stderr)


def main():
    check = Check(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]))
    mark = os.path.join(check.home, "ran")
    check.try_folder("plain", lambda where: None, files_damaged=0)
    check.try_folder("huge", huge, files_damaged=1)
    check.try_folder("links", links, files_foreign=3)
    check.try_folder("partial", partial, files_damaged=1)
    check.try_folder("no-json", put("rank-98.x.1.json", b"\x00\xff" * 100), files_damaged=1)
    check.try_folder("deep", put("rank-97.x.1.json", b"[" * 100000), files_damaged=1)
    check.try_folder("pickle", put("rank-96.x.1.json", pickle.dumps(Bomb("touch " + mark))), files_damaged=1)
    check.try_folder("not-ours", put("rank-95.x.1.json", b'{"rank": 3}'), files_damaged=1)
    check.try_folder("left-over", put(".rank-3.n000.1003.json.77", b'{"cuwhy_job":1,'), files_damaged=0)
    check.try_folder("names", names, first=False)
    check.try_folder("numbers", forged_numbers, first=False)
    check.try_folder("verdicts", verdicts, files_damaged=0)
    if os.geteuid() == 0:
        check.try_folder("other-user", other_user, files_foreign=1)
    for error in ("ESTALE", "EIO", "EINTR", "SHORT"):   # the first read of every file fails, or ends early
        check.try_folder("read-" + error, lambda where: None, env={"LD_PRELOAD": check.inject, "INJECT": error}, files_damaged=0)
    check.try_folder("read-always", lambda where: None, env={"LD_PRELOAD": check.inject, "INJECT": "ALWAYS"}, first=False, files_damaged=RANKS)
    for error in ("ENOSPC", "ESTALE"):
        check.say("write-" + error, list(writes(check, error)))
    flight = os.path.join(check.home, "trace_rank_0")
    with open(flight, "wb") as f:
        f.write(pickle.dumps({"version": "2.10", "pg_config": Bomb("touch " + mark)}))
    done = check.ask(flight)
    check.say("flight-recorder-bomb", (["status %d" % done.returncode] if done.returncode != 2 else []) + (["it ran"] if os.path.exists(mark) else []))
    shutil.rmtree(check.home)
    return 1 if check.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
