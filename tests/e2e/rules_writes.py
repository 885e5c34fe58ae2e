# SPDX-License-Identifier: Apache-2.0
"""A dry run changes no file of the user's, and the program does not notice."""
import hashlib
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time

import harness
import rules_fence
from harness import PATIENCE
from toolbox import Skip, each

OTHER = 54398       # an ordinary user


def same(what, found, expected):
    assert found == expected, "%s: %r, expected %r" % (what, found, expected)


# What programs do to files, and that all of it looks as if done.
PROGRAM = r"""
import ctypes, mmap, os, shutil, sqlite3, sys, tempfile
home, word = os.environ["HOME"], b"written in the dry run"
def text(path):
    with open(path, "rb") as f: return f.read()
def put(path, what, mode="wb"):
    with open(path, mode) as f: f.write(what)
assert text("last.pt") == b"trained weights"
put("last.pt", word); assert text("last.pt") == word                       # overwritten, by a relative path
put(home + "/log", b"+1\n", "ab"); assert text(home + "/log") == b"0\n+1\n"
with open("cut", "r+b") as f: f.truncate(2)
assert text("cut") == b"lo"
put("best.tmp", word); os.replace("best.tmp", "best.pt"); assert text("best.pt") == word and not os.path.exists("best.tmp")
os.rename("old", "new"); assert text("new") == b"old" and not os.path.exists("old")
os.chmod("mode", 0o600); assert os.stat("mode").st_mode & 0o777 == 0o600
os.utime("times", (1, 2)); assert os.stat("times").st_mtime == 2
os.remove("gone"); assert not os.path.exists("gone")
os.link("linked", "link"); assert os.stat("link").st_nlink >= 2
put("link", word); assert text("linked") == word
os.symlink("last.pt", "alias"); assert text("alias") == word
os.remove("pointer"); os.symlink("best.pt", "pointer"); assert text("pointer") == word
os.makedirs("made/in/here"); put("made/in/here/file", word); assert os.listdir("made/in/here") == ["file"]
os.removedirs("empty/inner"); assert not os.path.exists("empty")
shutil.rmtree("tree"); assert not os.path.exists("tree")
os.mkdir("tree"); assert os.listdir("tree") == []; put("tree/again", word)
shutil.copytree("copied", "copy"); assert sorted(os.listdir("copy")) == ["a", "b"]
shutil.move("moved", "elsewhere"); assert text("elsewhere/inside") == b"inside"
with open("mapped", "r+b") as f, mmap.mmap(f.fileno(), 0) as m: m[0:6] = b"MAPPED"
assert text("mapped").startswith(b"MAPPED")
db = sqlite3.connect("base.db"); db.execute("insert into t values (2)"); db.commit()
assert db.execute("select count(*) from t").fetchone()[0] == 2; db.close()
with tempfile.NamedTemporaryFile() as f: f.write(word); f.flush(); assert text(f.name) == word
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open("raw", os.O_RDWR); os.pwrite(fd, b"RAW", 0); os.fsync(fd); os.close(fd); assert text("raw") == b"RAW bytes"
fd = os.open(".", os.O_RDONLY); libc.renameat(fd, b"by_folder", fd, b"by_folder_2"); os.close(fd); assert text("by_folder_2") == b"by folder"
os.truncate("cut", 1); assert os.stat("cut").st_size == 1
os.chdir("copied"); put("c", word); os.chdir(".."); assert text("copied/c") == word
os.system("echo of a child > from_shell"); assert text("from_shell") == b"of a child\n"
print("all done", flush=True)
"""

FILES = {"last.pt": "trained weights", "log": "0\n", "cut": "long enough", "best.pt": "best", "old": "old", "mode": "mode", "times": "times",
         "gone": "gone", "linked": "linked", "tree/deep/file": "in a tree", "copied/a": "a", "copied/b": "b", "moved/inside": "inside",
         "mapped": "mapped file", "raw": "raw bytes", "by_folder": "by folder"}


def digest(folder):
    """Everything about every file, but when it was last read."""
    found = {}
    for place, folders, names in os.walk(folder):
        for name in [""] + folders + names:
            path = os.path.join(place, name) if name else place
            s = os.lstat(path)
            content = os.readlink(path) if stat.S_ISLNK(s.st_mode) else ""
            if stat.S_ISREG(s.st_mode):
                with open(path, "rb") as f:
                    content = hashlib.sha256(f.read()).hexdigest()
            found[path] = (s.st_mode, s.st_uid, s.st_gid, s.st_size if not stat.S_ISDIR(s.st_mode) else 0, s.st_mtime_ns, s.st_nlink, content)
    return found


def furnish(home, uid=None):
    for name, text in FILES.items():
        path = os.path.join(home, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
    os.makedirs(os.path.join(home, "empty", "inner"))
    os.symlink("last.pt", os.path.join(home, "pointer"))
    subprocess.run(["python3", "-c", "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.execute('create table t (n)');"
                    "d.execute('insert into t values (1)'); d.commit()", os.path.join(home, "base.db")], check=True)
    if uid is not None:
        for place, folders, names in os.walk(home):
            for name in [""] + folders + names:
                os.chown(os.path.join(place, name) if name else place, uid, uid, follow_symlinks=False)


class Desk:
    """A user with a home, in which dry runs take place."""

    def __init__(self, box, uid=None, home=None):
        self.box, self.uid = box, uid if uid is not None else os.geteuid()
        self.home = home or os.path.join(box.scratch, "user")
        os.makedirs(self.home, exist_ok=True)
        os.chmod(box.scratch, 0o755)
        furnish(self.home, self.uid)
        self.state = os.path.join(self.home, ".state")
        self.before = digest(self.home)

    def words(self, words):
        if self.uid == os.geteuid():
            return list(words)
        if not shutil.which("setpriv"):
            raise Skip("no setpriv")
        return ["setpriv", "--reuid", str(self.uid), "--regid", str(self.uid), "--clear-groups", *words]

    def env(self, **more):
        env = self.box.env(HOME=self.home, CUWHY_DIR=os.path.join(self.home, "..", "state-%d" % self.uid), CUWHY_WRITES_MODE="", **more)
        os.makedirs(env["CUWHY_DIR"], exist_ok=True)
        os.chown(env["CUWHY_DIR"], self.uid, -1)
        return env

    def run(self, argv, *options, before=(), timeout=PATIENCE, stdin=subprocess.DEVNULL, cwd=None, **env):
        words = list(before) + self.words([self.box.cuwhy, "run", "--gpu", "sim:tiny", *options, "--", *argv])
        return harness.Run(words, self.env(**env), timeout, cwd=cwd or self.home, stdin=stdin)

    def python(self, text, *options, **more):
        path = os.path.join(self.box.scratch, "program.py")
        with open(path, "w") as f:
            f.write(text)
        return self.run([self.interpreter(), path], *options, **more)

    def interpreter(self):
        """One that this user may run."""
        return self.box.python if self.uid == os.geteuid() else "/usr/bin/python3"

    def unchanged(self):
        after = digest(self.home)
        for path in sorted(set(self.before) | set(after)):
            same(path, after.get(path), self.before.get(path))

    def leaves_nothing(self):
        """At once, or, where a process of the program took its time to end, after another run."""
        until = time.monotonic() + PATIENCE
        while self.left():
            assert time.monotonic() < until, self.left()
            self.run(["true"])

    def left(self):
        """What cuwhy left behind."""
        place = os.path.join(self.home, "..", "state-%d" % self.uid)
        return os.listdir(place) if os.path.isdir(place) else []


def users():
    return ["root", "user"] if os.geteuid() == 0 else ["user"]


def desk_of(box, who, **more):
    uid = OTHER if who == "user" and os.geteuid() == 0 else None
    if uid and not (os.path.exists("/usr/bin/python3") and shutil.which("setpriv")):
        raise Skip("nothing that an ordinary user may run")
    become = ["setpriv", "--reuid", str(uid), "--clear-groups"] if uid else []
    if uid and harness.Run([*become, "test", "-r", os.path.join(box.build, "libcuwhy-rec.so")]).status:
        raise Skip("an ordinary user cannot reach %s" % box.build)
    if who == "user" and harness.Run([*become, "unshare", "-Um", "true"]).status:
        raise Skip("this system allows no user namespace")
    return Desk(box, uid, **more)


@each(users)
def rule__a_dry_run_changes_no_file(box, who):
    desk = desk_of(box, who)
    run = desk.python(PROGRAM)
    same("status of %s" % run.err, run.status, 0)
    same("output", run.out, "all done\n")
    desk.unchanged()
    same("left behind", desk.left(), [])
    last = run.err.strip().splitlines()[-1]
    assert last.startswith("cuwhy: no file of yours was changed; discarded what the program wrote: "), run.err
    assert "network (uploads, databases) was real" in last, last


def fence_missing(box):
    """Why nothing can hold a program back here without namespaces; "": it can be."""
    said = harness.Run([box.program("no_namespaces"), rules_fence.behind(box, old=False), "-"])
    return said.out if said.status else ""


def rule__a_dry_run_where_no_namespace_is_allowed_changes_no_file(box):
    desk = Desk(box)
    run = desk.python(PROGRAM, before=[box.program("no_namespaces")])
    desk.unchanged()
    if fence_missing(box):
        same("status of %s" % run.err, run.status, 125)
        assert "--writes=real" in run.err and "all done" not in run.out, run.err
    else:
        same("status of %s" % run.err, (run.status, run.out), (0, "all done\n"))
        assert "cuwhy: no file of yours was changed; discarded what the program wrote: " in run.err, run.err
        same("left behind", desk.left(), [])
    real = desk.run(["sh", "-c", "echo real >last.pt"], "--writes=real", before=[box.program("no_namespaces")])
    same("with --writes=real", (real.status, open(desk.home + "/last.pt").read()), (0, "real\n"))


def in_mounts(script, argv, env, cwd="/"):
    """Runs it as root in a mount namespace that a shell script prepares."""
    if os.geteuid() or not shutil.which("unshare") or harness.Run(["unshare", "-m", "true"]).status:
        raise Skip("needs root that may mount")
    return harness.Run(["unshare", "-m", "--propagation", "private", "sh", "-ec", script + '\nexec "$@"', "sh", *argv], env, cwd=cwd)


DIGEST = """
import json, sys; sys.path.insert(0, sys.argv[1]); import rules_writes
print(json.dumps(rules_writes.digest(sys.argv[2])), file=open(sys.argv[3], "w"))
"""


@each(["tmpfs", "overlay", "overlay-root"])
def rule__a_dry_run_changes_no_file_on(box, what):
    """The user's files in memory, on an overlay, and all of the system on one, as in a container."""
    home, here = os.path.join(box.scratch, "user"), os.path.dirname(os.path.abspath(__file__))
    os.mkdir(home)
    program, states = os.path.join(box.scratch, "program.py"), [os.path.join("/dev/shm", "cuwhy-test-%d-%s-%d" % (os.getpid(), what, i)) for i in (0, 1)]
    with open(program, "w") as f:
        f.write(PROGRAM)
    layers = os.path.join(box.scratch, "layers")
    script = {"tmpfs": "mount -t tmpfs tmpfs %s" % home,
              "overlay": "mkdir {0} {0}/u {0}/w; mount -t overlay o -o lowerdir={1},upperdir={0}/u,workdir={0}/w {1}".format(layers, home),
              "overlay-root": "mkdir {0}; mount -t tmpfs t {0}; mkdir {0}/u {0}/w {0}/r; "
                              "mount -t overlay o -o lowerdir=/,upperdir={0}/u,workdir={0}/w {0}/r; "
                              "for m in dev proc sys; do mount --rbind /$m {0}/r/$m; done; cd {0}/r; mkdir {0}/r/old_root_of_test; "
                              "pivot_root . old_root_of_test; umount -l old_root_of_test; cd /".format(layers)}[what]
    script += ('\npython=%s; export HOME=%s; cd %s; $python -c "import sys; sys.path.insert(0, sys.argv[1]); import rules_writes; '
               'rules_writes.furnish(sys.argv[2])" %s %s' % (box.python, home, home, here, home))
    look = [box.python, "-c", DIGEST, here, home]
    script += "\n" + " ".join("'%s'" % w for w in look + [states[0]]) + "\n"
    after_it = " ".join("'%s'" % w for w in look + [states[1]])
    try:
        run = in_mounts(script, ["sh", "-c", '"$@"; s=$?; %s; exit $s' % after_it, "sh", box.cuwhy, "run", "--gpu", "sim:tiny",
                                 "--", box.python, program], box.env(CUWHY_WRITES_MODE="", CUWHY_DIR=home + "/.state"))
        same("status of %s" % run.err, run.status, 0)
        same("output", run.out, "all done\n")
        before, after = (json.load(open(path)) for path in states)
    finally:
        for path in states:
            if os.path.exists(path):
                os.remove(path)
    before.pop(home), after.pop(home)       # cuwhy makes and removes its folder for recordings in it
    same("the user's files", {k: v for k, v in after.items() if before.get(k) != v}, {})
    same("number of files", len(after), len(before))


@each(users)
def rule__the_program_is_who_it_was(box, who):
    desk = desk_of(box, who)
    text = ("import os\nprint(os.getuid(), os.geteuid(), os.getgid(), os.getegid(), os.getgroups(), os.getcwd(), os.umask(0), oct(os.umask(0)))\n"
            "print([l for l in open('/proc/self/status') if l.startswith(('Cap', 'NoNewPrivs', 'Seccomp:', 'SigBlk', 'SigIgn'))])\n"
            "print(sorted(os.listdir('/proc/self/fd')), os.stat('.').st_uid, os.stat('last.pt').st_uid, os.stat('.').st_mode)\n")
    dry, real = desk.python(text), desk.python(text, "--writes=real")
    same("as the program sees it", dry.out, real.out)


@each(["0", "7", "kill -9 $$", "kill -TERM $$", "kill -SEGV $$"])
def rule__the_exit_status_stays(box, how):
    desk = Desk(box)
    script = how if how.startswith("kill") else "exit " + how
    same("status", desk.run(["sh", "-c", script]).code, desk.run(["sh", "-c", script], "--writes=real").code)
    same("not found", desk.run(["/nowhere/program"]).status, 127)
    same("left behind", desk.left(), [])


def rule__what_is_not_a_file_stays_real(box):
    """Output, inherited descriptors, shared memory."""
    desk, name = Desk(box), "cuwhy-test-%d" % os.getpid()
    path = os.path.join(box.scratch, "inherited")
    shared = os.path.join("/dev/shm", name)
    with open(path, "w") as file:
        text = "import os; print('out', flush=True); os.write(%d, b'inherited\\n'); open(%r, 'w').write('shared\\n')" % (file.fileno(), shared)
        run = subprocess.run([box.cuwhy, "run", "--gpu", "sim:tiny", "--", sys.executable, "-c", text], env=desk.env(), cwd=desk.home,
                             stdout=open(desk.home + "/out", "w"), stderr=subprocess.PIPE, pass_fds=[file.fileno()], check=False)
    try:
        same("status of %r" % run.stderr, run.returncode, 0)
        same("stdout", open(desk.home + "/out").read(), "out\n")
        same("an inherited descriptor", open(path).read(), "inherited\n")
        same("shared memory", open(shared).read(), "shared\n")
    finally:
        if os.path.exists(shared):
            os.remove(shared)


@each(users)
def rule__sockets_of_daemons_can_be_connected_to(box, who):
    desk = desk_of(box, who)
    folder = os.path.join(box.scratch, "daemon")
    os.mkdir(folder)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(folder + "/s")
        os.chmod(folder + "/s", 0o777)
        server.listen()
        run = desk.python("import socket\ns = socket.socket(socket.AF_UNIX); s.connect(%r); s.sendall(b'hello')\n" % (folder + "/s"))
        same("status of %s" % run.err, run.status, 0)
        server.settimeout(PATIENCE)
        same("it said", server.accept()[0].recv(100), b"hello")


@each(users)
def rule__folders_given_to_cuwhy_are_real(box, who):
    desk = desk_of(box, who)
    out, job = os.path.join(desk.home, "..", "out"), os.path.join(desk.home, "..", "job")
    for folder in (out, job):
        os.mkdir(folder)
        os.chown(folder, desk.uid, -1)
    run = desk.run(["sh", "-c", "echo x >last.pt; echo of the program >%s/note" % job], "--out", out, "--job", job)
    same("status of %s" % run.err, run.status, 0)
    same("recorded", json.load(open(out + "/verdict.json"))["cause"], "none")
    same("in the job's folder", open(job + "/note").read(), "of the program\n")
    desk.unchanged()


def rule__a_job_folder_that_has_the_user_s_files_is_refused(box):
    desk = Desk(box)
    run = desk.run(["sh", "-c", "echo x >last.pt"], "--job", ".")
    same("status", run.status, 125)
    assert "written to for real" in run.err and "--writes=real" in run.err, run.err
    desk.unchanged()


def rule__a_failure_is_recorded_as_without_a_layer(box):
    desk = Desk(box)
    program = os.path.join(box.scratch, "fails.py")
    with open(program, "w") as f:
        f.write("import cudrv\ncudrv.init()\nopen('last.pt', 'w').write('zeros')\ncudrv.alloc(1 << 50)  # here\n")
    site = os.path.join(os.path.dirname(os.path.abspath(__file__)), "site-packages")
    runs = [desk.run([box.python, program], "--json", "--out", os.path.join(box.scratch, "out%d" % i), *more, PYTHONPATH=site)
            for i, more in enumerate([(), ("--writes=real",)])]
    dry, real = (json.loads(run.err.strip().splitlines()[-1]) for run in runs)
    same("cause", dry["cause"], real["cause"])
    same("line", dry["where"], real["where"])
    same("replaced", [(os.path.basename(n["path"]), n["what"]) for n in dry["dry_run"]["writes"]["names"]], [("last.pt", "replaced")])


@each(users)
def rule__what_was_written_is_listed(box, who):
    desk = desk_of(box, who)
    run = desk.run(["sh", "-c", "echo 12345 >last.pt; rm gone; mkdir d; echo 1 >d/new; mkdir -p .cache; echo 1 >.cache/c"], "--json")
    writes = json.loads(run.err.strip().splitlines()[-1])["dry_run"]["writes"]
    same("mode", writes["mode"], "discarded")
    same("names, the user's own first", [(os.path.relpath(n["path"], desk.home), n["what"], n["bytes"]) for n in writes["names"]],
         [("last.pt", "replaced", 6), ("gone", "deleted", 0), ("d/new", "new", 2), (".cache/c", "new", 2)])
    same("counts", [writes[k] for k in ("files", "replaced", "deleted", "folders", "bytes")], [4, 1, 1, 2, 10])


def rule__a_folder_for_recordings_that_was_there_stays(box):
    """Empty as it is. One that was made for the layer goes with it."""
    for there in (True, False):
        state = os.path.join(box.scratch, "state-%d" % there)
        if there:
            os.mkdir(state)
        run = harness.Run([box.cuwhy, "run", "--gpu", "sim:tiny", "true"], box.env(CUWHY_WRITES_MODE="", CUWHY_DIR=state))
        same("status, and whether the folder is there", (run.status, os.path.isdir(state)), (0, there))


def rule__nothing_is_said_when_nothing_was_written(box):
    desk = Desk(box)
    same("stderr", desk.run(["cat", "last.pt"]).err, "")
    writes = json.loads(desk.run(["true"], "--json").err)["dry_run"]["writes"]
    same("in the JSON", (writes["mode"], writes["files"]), ("discarded", 0))


@each(users)
def rule__writes_can_be_kept(box, who):
    desk = desk_of(box, who)
    keep = os.path.join(desk.home, "..", "kept")
    if desk.uid != os.geteuid():
        os.mkdir(keep)
        os.chown(keep, desk.uid, -1)
    run = desk.python(PROGRAM, "--keep-writes", keep)
    same("status of %s" % run.err, run.status, 0)
    desk.unchanged()
    tree = os.path.realpath(keep) + os.path.realpath(desk.home)
    read = lambda name: open(os.path.join(tree, name)).read()
    word = "written in the dry run"
    same("written", (read("last.pt"), read("log"), read("made/in/here/file"), read("tree/again"), read("new"), read("elsewhere/inside")),
         (word, "0\n+1\n", word, word, "old", "inside"))
    same("mode and times", (os.stat(tree + "/mode").st_mode & 0o777, os.stat(tree + "/times").st_mtime), (0o600, 2))
    deleted = [os.path.relpath(line, desk.home) for line in open(keep + "/deleted.txt").read().splitlines()]
    for name in ("gone", "old", "tree/deep", "moved", "by_folder"):
        assert name in deleted, (name, deleted)
    assert "kept in '" in run.err, run.err
    same("only that", sorted(set(os.listdir(keep)) - {"deleted.txt"} - {os.path.realpath(desk.home).split("/")[1]} - {"tmp"}), [])
    again = desk.run(["true"], "--keep-writes", keep)
    same("into a folder that is not empty", again.status, 125)


def everything_in(folder):
    """Names and contents: what two folders with the same in them have in common."""
    found = {}
    for place, folders, names in os.walk(folder):
        for name in folders + names:
            path = os.path.join(place, name)
            found[os.path.relpath(path, folder)] = (os.readlink(path) if os.path.islink(path) else open(path, "rb").read() if os.path.isfile(path) else None)
    return found


def rule__what_is_kept_is_the_same_with_and_without_namespaces(box):
    desk = Desk(box)
    if fence_missing(box) or harness.Run(["unshare", "-Um", "true"]).status:
        raise Skip("this system has not both ways")
    os.symlink("nowhere", os.path.join(desk.home, "dangling"))
    more = ("os.remove('dangling'); shutil.rmtree('elsewhere'); shutil.rmtree('copied'); os.makedirs('copied/b'); put('copied/b/anew', word)\n")
    found = []
    for before in ([], [box.program("no_namespaces")]):
        keep = os.path.join(box.scratch, "kept-%d" % len(found))
        run = desk.python(PROGRAM + more, "--keep-writes", keep, before=before)
        same("status of %s" % run.err, run.status, 0)
        deleted = sorted(open(keep + "/deleted.txt").read().splitlines())
        os.unlink(keep + "/deleted.txt")
        shutil.rmtree(keep + "/tmp", ignore_errors=True)    # a folder that is empty again
        found.append((deleted, everything_in(keep), run.err.split(" wrote: ")[1].split(": ")[0]))
    for what, with_them, without in zip(("deleted", "kept", "said"), *found):
        same(what, without, with_them)
    same("of the deleted, still there", [path for path in found[0][0] if path[1:] in found[0][1]], [])


def rule__a_folder_that_was_renamed_is_kept_with_what_was_in_it(box):
    desk = desk_of(box, users()[0])
    if desk.uid:
        raise Skip("in a user namespace a folder that was there before cannot be renamed")
    keep = os.path.join(box.scratch, "kept")
    run = desk.run(["sh", "-c", "mv -T tree wood; echo 2 >wood/deep/two; rm wood/deep/file; mv copied wood/"], "--keep-writes", keep)
    same("status of %s" % run.err, run.status, 0)
    tree = keep + os.path.realpath(desk.home) + "/wood"
    same("in it", sorted(os.path.relpath(os.path.join(p, n), tree) for p, _, names in os.walk(tree) for n in names),
         ["copied/a", "copied/b", "deep/two"])
    desk.unchanged()


def rule__writes_may_be_real(box):
    for more, env in ((["--writes=real"], {}), ([], {"CUWHY_WRITES_MODE": "real"})):
        with open(os.path.join(box.scratch, "file"), "w") as f:
            f.write("before")
        box_env = dict(box.env(CUWHY_WRITES_MODE=""), **env)
        run = harness.Run([box.cuwhy, "run", "--gpu", "sim:tiny", *more, "sh", "-c", "echo after >file; echo $WANDB_MODE"], box_env, cwd=box.scratch)
        same("the file", open(os.path.join(box.scratch, "file")).read(), "after\n")
        same("said", (run.out, run.err), ("\n", ""))
    run = harness.Run([box.cuwhy, "run", "--writes=real", "true"], box.env())
    same("without a simulated GPU", run.status, 2)


def rule__wandb_stays_offline_unless_told_otherwise(box):
    desk = Desk(box)
    same("by itself", desk.run(["sh", "-c", "echo $WANDB_MODE"]).out, "offline\n")
    same("told", desk.run(["sh", "-c", "echo $WANDB_MODE"], WANDB_MODE="online").out, "online\n")


def wait_for(condition, what):
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.02)


@each(users)
def rule__a_daemon_keeps_its_files_and_they_go_with_it(box, who):
    desk = desk_of(box, who)
    out = os.path.join(box.scratch, "told")
    os.mkdir(out)
    os.chown(out, desk.uid, -1)
    # its descriptors are real: it tells by one that it inherits
    run = desk.run(["sh", "-c", "echo mine >last.pt; (exec 2>/dev/null >/dev/null; trap 'cat last.pt >/dev/shm/cuwhy-test-$$-told; exit' TERM; "
                    "while :; do sleep 0.1; done) & echo $! $$"])
    same("status of %s" % run.err, run.status, 0)
    pid, shell = map(int, run.out.split())
    told = "/dev/shm/cuwhy-test-%d-told" % shell
    try:
        assert "still runs" in run.err, run.err
        desk.unchanged()
        same("the layer stays", len(desk.left()), 1)
        desk.run(["true"])
        same("another run leaves it alone", len(desk.left()), 1)
        os.kill(pid, signal.SIGTERM)
        wait_for(lambda: os.path.exists(told) and open(told).read(), "the daemon's file")
        same("what it read", open(told).read(), "mine\n")
    finally:
        if os.path.exists(told):
            os.remove(told)
    wait_for(lambda: not os.path.exists("/proc/%d" % pid), "the daemon's end")
    desk.run(["true"])
    same("a later run removes it", desk.left(), [])
    desk.unchanged()


@each(users)
def rule__a_run_that_was_killed_leaves_nothing_for_long(box, who):
    desk = desk_of(box, who)
    words = desk.words([box.cuwhy, "run", "--gpu", "sim:tiny", "--", "sh", "-c", "echo x >last.pt; echo up; sleep 1000"])
    child = subprocess.Popen(words, env=desk.env(), cwd=desk.home, stdout=subprocess.PIPE, start_new_session=True)
    same("it runs", child.stdout.readline(), b"up\n")
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    same("its layer", len(desk.left()), 1)
    desk.leaves_nothing()
    desk.unchanged()


@each(users)
def rule__a_run_in_a_dry_run_writes_where_that_does(box, who):
    desk = desk_of(box, who)
    run = desk.run([box.cuwhy, "run", "--gpu", "sim:tiny", "sh", "-c", "cat last.pt; echo inner >last.pt; cat last.pt"])
    same("status of %s" % run.err, (run.status, run.out), (0, "trained weightsinner\n"))
    assert " wrote: 1 file, " in run.err, run.err
    desk.unchanged()
    desk.leaves_nothing()


def rule__a_run_in_a_dry_run_without_namespaces_writes_where_that_does(box):
    desk = Desk(box)
    if fence_missing(box):
        raise Skip(fence_missing(box))
    inner = [box.cuwhy, "run", "--gpu", "sim:tiny", "--json", "sh", "-c", "cat last.pt; echo inner >last.pt; cat last.pt"]
    run = desk.run(["sh", "-c", '"$@" >said && head -n 2 said && cat last.pt', "sh", *inner], before=[box.program("no_namespaces")])
    same("status of %s" % run.err, (run.status, run.out.splitlines()[0], run.out.splitlines()[-1]), (0, "trained weightsinner", "inner"))
    assert " wrote: 2 files, " in run.err, run.err
    desk.unchanged()
    desk.leaves_nothing()


def rule__the_current_folder_may_be_gone(box):
    desk = Desk(box)
    script = ('mkdir d; cd d; rmdir ../d; exec "$@"')
    run = harness.Run(["sh", "-c", script, "sh", box.cuwhy, "run", "--gpu", "sim:tiny", "sh", "-c", "echo x >../last.pt"], desk.env(), cwd=desk.home)
    assert run.status != 0, run.err     # from there, nothing can be written
    same("the file", open(desk.home + "/last.pt").read(), "trained weights")


def rule__a_thousand_mounts_are_no_obstacle(box):
    home = os.path.join(box.scratch, "user")
    os.mkdir(home)
    script = "cd %s; for i in $(seq 1000); do mkdir $i; mount -t tmpfs -o size=64k t $i; done; echo real >999/file" % home
    run = in_mounts(script, ["sh", "-c", '"$@"; cat 999/file', "sh", box.cuwhy, "run", "--gpu", "sim:tiny", "sh", "-c", "echo dry >999/file; cat 999/file"],
                    box.env(CUWHY_WRITES_MODE=""))
    same("in it and behind it, %s" % run.err, run.out, "dry\nreal\n")


def rule__every_writable_mount_is_covered(box):
    """Mounts in mounts, over mounts, of a single file, read-only ones."""
    home = os.path.join(box.scratch, "user")
    os.mkdir(home)
    script = ("cd %s; mkdir a b; mount -t tmpfs t a; mkdir a/in; mount -t tmpfs t a/in; echo 1 >a/in/f; mount -t tmpfs t a; mkdir a/in; echo 2 >a/in/f; "
              "echo 3 >single; echo 4 >over; mount --bind over single; mount -t tmpfs t b; echo 5 >b/f; mount -o remount,ro b; "
              "mkdir 'odd, name:x'; mount -t tmpfs t 'odd, name:x'; echo 6 >'odd, name:x/f'" % home)
    inner = ("echo x >a/in/f; echo x >a/new; echo x >single; echo x >over; echo x >b/f; echo x >'odd, name:x/f'; cat a/in/f single over b/f 'odd, name:x/f' | tr -d '\\n'")
    run = in_mounts(script, ["sh", "-c", '"$@" 2>/dev/null; echo; cat a/in/f single over b/f "odd, name:x/f" | tr -d "\\n"; ls a', "sh", box.cuwhy, "run",
                             "--gpu", "sim:tiny", "sh", "-c", inner], box.env(CUWHY_WRITES_MODE=""))
    same("in it and behind it, %s" % run.err, run.out, "x4x5x\n24456in\n")


@each(users)
def rule__a_program_that_writes_too_much_is_ended(box, who):
    desk = desk_of(box, who)
    run = desk.run(["sh", "-c", "head -c 30000000 /dev/zero >big; sleep 1000"], CUWHY_WRITES_LIMIT="10M")
    same("status", run.status, 128 + signal.SIGTERM)
    assert "passed the limit of 10.0 MiB; CUWHY_WRITES_LIMIT=SIZE changes it" in run.err, run.err
    desk.leaves_nothing()
    same("below it", desk.run(["sh", "-c", "head -c 3000000 /dev/zero >big; sleep 1"], CUWHY_WRITES_LIMIT="10M").status, 0)


@each(users)
def rule__whatever_a_program_leaves_is_removed(box, who):
    desk = desk_of(box, who)
    text = ("import os\nos.mkdir('closed'); open('closed/f', 'w').close(); os.chmod('closed/f', 0); os.chmod('closed', 0)\n"
            "for i in range(3000): os.mkdir('many%d' % i)\n"
            "for i in range(400):\n    os.mkdir('deep'); os.chdir('deep')\n"
            "os.mkfifo('pipe')\nos.system('chattr +i pipe 2>/dev/null')\n")
    run = desk.python(text)
    same("status of %s" % run.err, run.status, 0)
    desk.leaves_nothing()
    desk.unchanged()


def rule__a_group_s_files_are_not_written_to(box):
    """In a user namespace an overlay cannot take over what belongs to a group that is not the user's first: it may fail, never write."""
    desk = desk_of(box, "user")
    if os.geteuid():
        raise Skip("needs root to give files to a group")
    path = os.path.join(desk.home, "shared")
    with open(path, "w") as f:
        f.write("ours")
    os.chown(path, 0, OTHER + 1)
    os.chmod(path, 0o664)
    words = ["setpriv", "--reuid", str(OTHER), "--regid", str(OTHER), "--groups", "%d,%d" % (OTHER, OTHER + 1), box.cuwhy, "run", "--gpu", "sim:tiny", "--",
             "sh", "-c", "cat shared; echo x >shared"]
    run = harness.Run(words, desk.env(), cwd=desk.home)
    same("read", run.out, "ours")
    same("the file", open(path).read(), "ours")


def rule__fit_says_it_once(box):
    desk = Desk(box)
    run = harness.Run([box.cuwhy, "fit", "--gpu", "rtx4090", "--", "sh", "-c", "echo zeros >last.pt"], desk.env(), cwd=desk.home)
    desk.unchanged()
    same("said", (run.out + run.err).count("no file of yours was changed; discarded what the dry run wrote: 1 file, 6.0 bytes: last.pt (replaced)"
                                           .replace("6.0 bytes", "6 bytes")), 1)
    desk.leaves_nothing()


def rule__what_fit_leaves_in_environments_is_not_for_others_to_make(box):
    desk = Desk(box)
    run = harness.Run([box.cuwhy, "fit", "--writes=real", "--gpu", "rtx4090", "--", "sh", "-c", 'env >"$HOME/env"'], desk.env(TMPDIR=box.scratch), cwd=desk.home)
    env = dict(line.split("=", 1) for line in open(desk.home + "/env").read().splitlines() if "=" in line)
    module = env["PYTHONPATH"].split(":")[0]
    assert os.path.exists(module + "/sitecustomize.py") and not module.startswith(box.scratch), (module, run.err)
    # long after: another file in its place is left alone, and the program goes on
    stopped = env["CUWHY_FIT_STOPPED"]
    assert not os.path.exists(stopped), stopped
    os.makedirs(os.path.dirname(stopped))
    os.chmod(os.path.dirname(stopped), 0o777)
    with open(stopped, "w") as f:
        f.write("of another user")
    after = harness.Run([box.python, "-c", "import sitecustomize; print(sitecustomize.is_waited_for())"], dict(os.environ, **env))
    shutil.rmtree(os.path.dirname(stopped))
    same("waited for", after.out, "False\n")
