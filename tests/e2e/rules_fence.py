# SPDX-License-Identifier: Apache-2.0
"""The fence: where a dry run cannot have a layer of mounts, nothing of the user's can be changed all the same, and programs do not notice.

The random operations are always the same, unless SEED is set: SEED=$RANDOM tests/e2e/run.py random_operations_behind."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

from toolbox import Skip, each, same

HERE = os.path.dirname(os.path.abspath(__file__))
SRC = os.path.join(HERE, "..", "..", "src")
sys.path.insert(0, os.path.join(HERE, "fence"))
import everyday  # noqa: E402
import operations  # noqa: E402

NOBODY = 65534
USERS = ("root", "nobody") if os.geteuid() == 0 else ("user",)
KINDS = USERS + ("old",)    # old: Linux 5.13, where nothing may go from one folder to another, and Landlock does not see what empties a file
ATTACKS_LEAST = 150     # that are tried; a kernel without 32-bit calls tries fewer
OPERATIONS = 400
COMPARED_EVERY = 10
EXDEV = ["OSError", 18]     # a folder of the user's cannot be renamed, as in an overlay


def behind(box, old):
    sources = [os.path.join(SRC, name) for name in ("writes/fence.c", "writes/fence_filter.c", "base/err.c")]
    program = os.path.join(HERE, "programs", "behind.c")
    return box.builder.compile(program, "behind_old" if old else "behind", ["-I" + SRC, *sources] + ["-DFENCE_ABI_MOST=1"] * old)


class Tree:
    """A folder of the user's, one for what is written, and whoever runs the program."""

    def __init__(self, box, user, where=None):
        self.top = tempfile.mkdtemp(prefix="cuwhy-fence-", dir=where)
        os.chmod(self.top, 0o755)
        self.real, self.scratch = os.path.join(self.top, "real", operations.BELOW), os.path.join(self.top, "scratch")
        for folder in (self.real, self.scratch):
            os.makedirs(folder)
        self.behind = [behind(box, user == "old")]
        self.library, self.python, self.prefix = os.path.join(box.build, "libcuwhy-writes.so"), box.python, []
        if user == "nobody":
            self.become_nobody()

    def become_nobody(self):
        self.prefix = ["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups"]
        self.python = shutil.which("python3", path="/usr/bin:/bin") or self.python
        mine = os.path.join(self.top, "behind")
        self.behind = [shutil.copy(self.behind[0], mine)]
        self.library = shutil.copy(self.library, os.path.join(self.top, os.path.basename(self.library)))
        for name in ("operations.py", "everyday.py"):
            shutil.copy(os.path.join(HERE, "fence", name), self.top)
        if subprocess.run(self.prefix + [self.python, "-c", "open(%r)" % os.path.join(self.top, "everyday.py")], stderr=subprocess.DEVNULL).returncode:
            raise Skip("nobody else can run Python here")

    def give(self):
        """What was planted belongs to whoever runs the program."""
        if self.prefix:
            subprocess.run(["chown", "-hR", "%d:%d" % (NOBODY, NOBODY), os.path.join(self.top, "real"), self.scratch], check=True)

    def command(self, argv, redirected=True):
        return self.prefix + self.behind + [self.scratch, "/dev/shm", self.library if redirected else ""] + argv

    def helper(self, name):
        return os.path.join(self.top if self.prefix else os.path.join(HERE, "fence"), name)

    def state(self):
        """Everything about every file, down to the time of its last change of any kind."""
        found = []
        for folder, folders, names in os.walk(os.path.join(self.top, "real")):
            for name in folders + names + ["."]:
                path = os.path.join(folder, name)
                st = os.lstat(path)
                found.append((path, st.st_mode, st.st_uid, st.st_gid, st.st_ino, st.st_nlink, st.st_size, st.st_mtime_ns, st.st_ctime_ns,
                              sorted(os.listxattr(path, follow_symlinks=False)), os.readlink(path) if os.path.islink(path) else
                              open(path, "rb").read() if os.path.isfile(path) else b""))
        return sorted(found)

    def remove(self):
        shutil.rmtree(self.top, ignore_errors=True)


def possible(tree):
    said = subprocess.run(tree.behind + ["-"], stdout=subprocess.PIPE, universal_newlines=True)
    if said.returncode:
        raise Skip(said.stdout.strip())
    return tree


def plant_for_attack(folder):
    for name in ("folder", "empty"):
        os.mkdir(os.path.join(folder, name))
    for name in ("file", "other", "folder/inner"):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as stream:
            stream.write(name)
    os.symlink("file", os.path.join(folder, "link"))
    try:
        os.setxattr(os.path.join(folder, "file"), "user.kept", b"1")
    except OSError:
        pass    # this file system has none


def attack(box, tree):
    plant_for_attack(tree.real)
    tree.give()
    program = shutil.copy(box.program("attack"), os.path.join(tree.top, "attack"))
    return [program, tree.real, tree.scratch]


def said_of(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    return done.returncode, done.stdout.splitlines()


@each(KINDS)
def rule__no_system_call_changes_a_file_behind_the_fence(box, user):
    tree = possible(Tree(box, user))
    argv = attack(box, tree)
    before = tree.state()
    status, lines = said_of(tree.command(argv, redirected=False))
    same([line for line in lines if line.startswith("allowed")], [], "what the kernel allowed")
    same(status, 0, "status")
    tried = [int(line.split()[1]) for line in lines if line.startswith("tried: ")]
    assert tried and tried[0] >= ATTACKS_LEAST, lines
    same(tree.state(), before, "the user's files")
    tree.remove()


@each(USERS)
def rule__the_attacks_on_the_fence_are_real_ones(box, user):
    tree = Tree(box, user)
    argv = attack(box, tree)
    before = tree.state()
    status, lines = said_of(tree.prefix + argv + ["harmless"])
    succeeded = {line for line in lines if line.startswith("allowed")}
    assert status != 0 and tree.state() != before, lines
    for what in ("open", "truncate", "unlinkat", "rename in", "fchmodat", "fchmod", "utimensat", "futimens", "linkat in", "mkdirat", "bind"):
        assert "allowed: " + what in succeeded, (what, lines)
    tree.remove()


@each(KINDS)
def rule__programs_behind_the_fence_see_what_they_have_done(box, user):
    for where in (None, "/dev/shm"):    # another file system, too
        tree = possible(Tree(box, user))
        if where:
            tree.scratch = tempfile.mkdtemp(prefix="cuwhy-fence-", dir=where)
        everyday.plant(tree.real)
        tree.give()
        before = tree.state()
        status, lines = said_of(tree.command([tree.python, tree.helper("everyday.py"), tree.real]))
        assert status == 0 and lines[-1].startswith("all "), "\n".join(lines)
        same(tree.state(), before, "the user's files")
        shutil.rmtree(tree.scratch)
        tree.remove()


class Worker:
    """A process that does operations on a tree, one by one."""

    def __init__(self, tree, command, root):
        self.process = subprocess.Popen(command + [tree.python, tree.helper("operations.py"), "do", root], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, universal_newlines=True, env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"))

    def __call__(self, operation):
        self.process.stdin.write(json.dumps(operation) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@each(KINDS)
def rule__random_operations_behind_the_fence_have_the_results_of_real_ones(box, user):
    seed = int(os.environ.get("SEED", "1"))
    tree, copy = possible(Tree(box, user)), Tree(box, user)
    operations.plant(tree.real)
    operations.plant(copy.real)
    tree.give()
    copy.give()
    before = tree.state()
    fenced, plain = Worker(tree, tree.command([]), tree.real), Worker(copy, copy.prefix, copy.real)
    for i, operation in enumerate(operations.operations(seed, OPERATIONS, operations.ANY if user == "root" else operations.USABLE)):
        got = fenced(operation)
        if got != EXDEV:
            same(got, plain(operation), "seed %d, step %d: %s" % (seed, i, operation))
        if i % COMPARED_EVERY == 0:
            same(fenced(["all"]), plain(["all"]), "all files, seed %d, after step %d: %s" % (seed, i, operation))
    fenced.end()
    plain.end()
    same(tree.state(), before, "the user's files")
    tree.remove()
    copy.remove()


def rule__without_a_scratch_the_library_redirects_nothing(box):
    tree = Tree(box, USERS[0])
    done = subprocess.run([tree.python, "-c", "open('made', 'w').write('x')"], cwd=tree.real, env=dict(os.environ, LD_PRELOAD=tree.library))
    same((done.returncode, os.listdir(tree.real)), (0, ["made"]), "what was written")
    tree.remove()
