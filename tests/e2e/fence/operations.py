# SPDX-License-Identifier: Apache-2.0
"""Random operations on files, and one process that does them: what it answers is the same on a real tree and behind the fence.

    operations.py do ROOT       reads operations as JSON lines, answers each with one
"""
import ctypes
import glob
import json
import os
import random
import shutil
import stat
import sys
import tempfile

ABOVE = "../../../.."
BELOW = "in/in/in/root"     # links in the tree may lead out of it, again and again
NAMES = ("a", "b", "c", "d", "e", "long-name")
TREE = {    # what is there before: text is a file, None a folder, a tuple a link
    "a": "one", "b": None, "b/a": "two" * 1000, "b/b": None, "b/b/c": "three", "c": ("a",), "d": ("b",), "b/d": ("../a",), "e": ("nowhere",), "b/e": None,
    "b/e/a": "", "b/e/b": "x", "b/b/a": None, "long-name": "y" * 70000, "b/c": ("e",),
}


def plant(root):
    for name, what in TREE.items():
        path = os.path.join(root, name)
        if what is None:
            os.mkdir(path)
        elif isinstance(what, tuple):
            os.symlink(what[0], path)
        else:
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(what)
            os.utime(path, (1000, 2000))


# ---- what is done, each with a name ------------------------------------------------------------------------------

def told(st):
    """What of a stat must be the same: no inode, and a folder's size and links are its file system's."""
    kind = stat.S_IFMT(st.st_mode)
    return [stat.filemode(st.st_mode), st.st_size if kind != stat.S_IFDIR else 0, st.st_nlink if kind == stat.S_IFREG else 0,
            st.st_mtime_ns if st.st_mtime < 10**6 and kind != stat.S_IFDIR else 0]


def put(path, flags, text):
    fd = os.open(path, flags, 0o640)
    try:
        if flags & (os.O_WRONLY | os.O_RDWR):
            os.write(fd, text.encode())
        return told(os.fstat(fd))[:2]
    finally:
        os.close(fd)


def text_of(path):
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def readable(path):
    try:
        return text_of(path)
    except PermissionError:
        return None


def stream(path, mode, text):
    with open(path, mode, encoding="utf-8") as out:
        out.write(text)


def under(path, do):
    """With a descriptor of a folder, and a name relative to it."""
    fd = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        return do(os.path.basename(path), fd)
    finally:
        os.close(fd)


def listed(path):
    return sorted((e.name, e.is_dir(), e.is_symlink(), e.is_file()) for e in os.scandir(path))


def list_fd(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        return sorted(os.listdir(fd))
    finally:
        os.close(fd)


def walked(path):
    return sorted((p, sorted(d), sorted(f)) for p, d, f in os.walk(path))


def entered(path, root):
    os.chdir(path)
    try:
        return [os.path.relpath(os.getcwd(), root), sorted(os.listdir(".")), os.path.exists("a"), os.path.relpath(os.path.realpath(".."), root)]
    finally:
        os.chdir(root)


def made_temp(path):
    fd, name = tempfile.mkstemp(dir=path)
    os.close(fd)
    os.unlink(name)
    folder = tempfile.mkdtemp(dir=path)
    os.rmdir(folder)
    return [os.path.dirname(name), os.path.dirname(folder)]


libc = ctypes.CDLL(None, use_errno=True)


def in_c(function, *arguments):
    ctypes.set_errno(0)
    rc = getattr(libc, function)(*[a.encode() if isinstance(a, str) else a for a in arguments])
    if rc < 0:
        raise OSError(ctypes.get_errno(), "")
    return rc


def renamed(old, new, flags):
    return in_c("renameat2", -100, old, -100, new, flags)


def made_fifo(path):
    os.mkfifo(path)
    kind = told(os.stat(path))[0]
    os.unlink(path)     # opening it would wait
    return kind


def chmod_fd(path, mode):
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fchmod(fd, mode)
        return told(os.stat(path))[0]
    finally:
        os.close(fd)


def reopened(path, flags):
    fd = os.open(path, os.O_RDONLY)
    try:
        again = os.open("/proc/self/fd/%d" % fd, flags)
        try:
            return [os.readlink("/proc/self/fd/%d" % again), os.write(again, b"again") if flags & os.O_WRONLY else 0]
        finally:
            os.close(again)
    finally:
        os.close(fd)


def into_itself(a, b):
    return (os.path.realpath(b) + "/").startswith(os.path.realpath(a) + "/") or (os.path.realpath(os.path.join(b, "x")) + "/").startswith(os.path.realpath(a) + "/")


def moved(a, b):
    if not into_itself(a, b):
        shutil.move(a, b)


def copied_tree(a, b):
    if into_itself(a, b):
        return None
    try:
        shutil.copytree(a, b, symlinks=True)
    except shutil.Error as e:
        return sorted(os.path.basename(x[0]) for x in e.args[0])


FLAGS = [os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT | os.O_EXCL, os.O_RDWR | os.O_TRUNC,
         os.O_WRONLY | os.O_APPEND, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, os.O_RDONLY | os.O_CREAT, os.O_WRONLY | os.O_NOFOLLOW, os.O_RDONLY | os.O_NOFOLLOW,
         os.O_RDONLY | os.O_DIRECTORY, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW]

# name: (function, what its arguments are: path, flags, text, mode, number), more often: several times
OPERATIONS = {
    "put": (put, "pft"), "text": (text_of, "p"), "write": (lambda p, t: stream(p, "w", t), "pt"), "append": (lambda p, t: stream(p, "a", t), "pt"),
    "update": (lambda p, t: stream(p, "r+", t), "pt"), "new": (lambda p, t: stream(p, "x", t), "pt"), "mkdir": (os.mkdir, "pm"), "rmdir": (os.rmdir, "p"),
    "unlink": (os.unlink, "p"), "rename": (os.rename, "pp"), "replace": (os.replace, "pp"), "link": (os.link, "pp"),
    "symlink": (os.symlink, "lp"), "readlink": (os.readlink, "p"), "stat": (lambda p: told(os.stat(p)), "p"), "lstat": (lambda p: told(os.lstat(p)), "p"),
    "exists": (os.path.exists, "p"), "access": (lambda p, n: os.access(p, n % 8), "pn"), "chmod": (os.chmod, "pm"), "chmod_fd": (chmod_fd, "pm"),
    "utime": (lambda p, n: os.utime(p, (n, n)), "pn"), "utime_link": (lambda p, n: os.utime(p, (n, n), follow_symlinks=False), "pn"),
    "truncate": (lambda p, n: os.truncate(p, n % 300), "pn"), "listdir": (lambda p: sorted(os.listdir(p)), "p"), "scandir": (listed, "p"),
    "list_fd": (list_fd, "p"), "walk": (walked, "p"), "glob": (lambda p: sorted(glob.glob(os.path.join(p, "*", "*"))), "p"),
    "makedirs": (lambda p: os.makedirs(os.path.join(p, "x", "y")), "p"), "rmtree": (lambda p: shutil.rmtree(p), "p"),
    "copy2": (lambda a, b: told(os.stat(shutil.copy2(a, b))), "pp"), "copytree": (copied_tree, "pp"), "move": (moved, "pp"),
    "mkfifo": (made_fifo, "p"), "temp": (made_temp, "p"), "renameat2": (renamed, "ppe"), "reopen": (reopened, "pf"),
    "open_at": (lambda p, f, t: under(p, lambda n, fd: os.close(os.open(n, f, 0o600, dir_fd=fd))), "pft"),
    "stat_at": (lambda p: under(p, lambda n, fd: told(os.stat(n, dir_fd=fd, follow_symlinks=False))), "p"),
    "mkdir_at": (lambda p, m: under(p, lambda n, fd: os.mkdir(n, m, dir_fd=fd)), "pm"),
    "unlink_at": (lambda p: under(p, lambda n, fd: os.unlink(n, dir_fd=fd)), "p"),
    "rename_at": (lambda a, b: under(a, lambda n, fd: os.rename(n, b, src_dir_fd=fd)), "pp"),
    "creat": (lambda p: os.close(in_c("creat", p, 0o600)), "p"), "remove_c": (lambda p: in_c("remove", p), "p"),
}
ROOTED = {"enter": (entered, "p"), "realpath": (lambda p, root: os.path.relpath(os.path.realpath(p), root), "p")}


# ---- choosing ----------------------------------------------------------------------------------------------------

def some_path(dice):
    parts = [dice.choice(NAMES) for _ in range(dice.choice((1, 1, 2, 2, 2, 3, 3, 4)))]
    if dice.random() < 0.06:
        parts.insert(dice.randrange(1, len(parts) + 1), dice.choice(("..", ".")))
    return "/".join(parts) + ("/" if dice.random() < 0.04 else "")


USABLE = (0o755, 0o700, 0o711, 0o750, 0o775)
ANY = USABLE + (0o555, 0o600, 0o300, 0o444, 0o000)
CHOOSE = {
    "p": some_path, "f": lambda dice: dice.choice(FLAGS), "t": lambda dice: "text %d\n" % dice.randrange(10**6) * dice.choice((1, 1, 3, 900)),
    "n": lambda dice: dice.randrange(1, 10**5), "e": lambda dice: dice.choice((0, 1, 1, 2)),
    "l": lambda dice: dice.choice(("..", "a", "nowhere", "../b", "e", "b/b", "d/../a", "long-name")),
}


def some_operation(dice, modes):
    name = dice.choice(sorted(OPERATIONS) + sorted(ROOTED) + ["put", "write", "unlink", "mkdir", "rename", "replace", "symlink", "listdir"] * 2)
    kinds = (OPERATIONS.get(name) or ROOTED[name])[1]
    return [name] + [dice.choice(modes) if kind == "m" else CHOOSE[kind](dice) for kind in kinds]


def operations(seed, count, modes=USABLE):
    """With modes by which its owner cannot use a file, only root does the same behind the fence and elsewhere."""
    dice = random.Random(seed)
    return [some_operation(dice, modes) for _ in range(count)]


# ---- doing -------------------------------------------------------------------------------------------------------

def plain(value, root):
    """The answer, without the name of the tree: links may lead out of its root, into the folders above."""
    return json.loads(json.dumps(value, default=str).replace(os.path.abspath(os.path.join(root, ABOVE)), "TREE"))


def done(operation, root):
    name, arguments = operation[0], operation[1:]
    try:
        if name in ROOTED:
            return ["ok", plain(ROOTED[name][0](*arguments, root), root)]
        return ["ok", plain(OPERATIONS[name][0](*arguments), root)]
    except shutil.Error as e:
        return ["Error", plain(str(e), root)]
    except OSError as e:
        return ["OSError", e.errno]


def all_of(root):
    """Everything in the tree, by os.walk, which lists, and by stat and reading, which look up."""
    found = []
    for folder, folders, names in os.walk(root):
        for name in sorted(folders + names):
            path = os.path.join(folder, name)
            try:
                st = os.lstat(path)
            except PermissionError:
                found.append([os.path.relpath(path, root), "denied"])
                continue
            found.append([os.path.relpath(path, root)] + told(st) +
                         [os.readlink(path) if stat.S_ISLNK(st.st_mode) else readable(path) if stat.S_ISREG(st.st_mode) else ""])
    return sorted(found)


def main():
    root = os.path.realpath(sys.argv[2])
    os.chdir(root)
    os.umask(0o022)
    for line in sys.stdin:
        operation = json.loads(line)
        answer = all_of(os.path.dirname(root)) if operation == ["all"] else done(operation, root)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
