# SPDX-License-Identifier: Apache-2.0
"""What programs do with files every day, each checked by the program itself: everyday.py FOLDER. Says "all N held", or what did not."""
import ctypes
import glob
import io
import mmap
import multiprocessing
import os
import shelve
import shutil
import socket
import sqlite3
import stat
import subprocess
import sys
import tarfile
import tempfile
import zipfile

HELD = []
FILES = 50      # that several processes want to have


def check(function):
    HELD.append(function)
    return function


def read(path):
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def write(path, text, mode="w"):
    with open(path, mode, encoding="utf-8") as stream:
        stream.write(text)


@check
def files():
    assert read("old.txt") == "old\n"
    write("old.txt", "more\n", "a")
    assert read("old.txt") == "old\nmore\n"
    write("tmp", "whole")
    os.replace("tmp", "old.txt")
    assert read("old.txt") == "whole"
    os.truncate("old.txt", 2)
    assert os.stat("old.txt").st_size == 2
    os.unlink("old.txt")
    assert not os.path.exists("old.txt") and "old.txt" not in os.listdir(".")


@check
def settings():
    os.chmod("folder/inner", 0o640)
    os.utime("folder/inner", (5, 6))
    st = os.stat("folder/inner")
    assert stat.S_IMODE(st.st_mode) == 0o640 and st.st_mtime == 6, st
    with open("folder/inner", "rb") as stream:
        os.fchmod(stream.fileno(), 0o600)
        os.utime(stream.fileno(), (7, 8))
    assert stat.S_IMODE(os.stat("folder/inner").st_mode) == 0o600 and os.stat("folder/inner").st_mtime == 8
    os.chmod("folder", 0o711)
    assert stat.S_IMODE(os.stat("folder").st_mode) == 0o711
    shutil.copystat("folder/inner", "folder/other")
    assert os.stat("folder/other").st_mtime == 8
    try:
        os.setxattr("folder/inner", "user.x", b"1")
        assert os.getxattr("folder/inner", "user.x") == b"1"
        os.setxattr("folder", "user.x", b"2")
        assert os.getxattr("folder", "user.x") == b"2" and sorted(os.listxattr("folder")) == ["user.kept", "user.x"]
        os.removexattr("folder", "user.kept")
        assert os.listxattr("folder") == ["user.x"]
    except OSError as e:
        assert e.errno == 95, e    # this file system has none


@check
def folders():
    os.makedirs("a/b/c")
    write("a/b/c/d", "deep")
    assert [f for _, _, f in os.walk("a")] == [[], [], ["d"]]
    os.chdir("a/b")
    assert os.getcwd().endswith("/a/b") and read("c/d") == "deep" and os.listdir(".") == ["c"]
    os.chdir("../..")
    assert sorted(glob.glob("**/d", recursive=True)) == ["a/b/c/d"]
    shutil.copytree("folder", "copied")
    assert sorted(os.listdir("copied")) == sorted(os.listdir("folder"))
    shutil.move("copied", "a/moved")
    shutil.move("folder/sub", "a/sub")
    assert read("a/sub/deep") == "deep\n" and not os.path.exists("folder/sub")
    shutil.rmtree("folder")
    assert not os.path.exists("folder")
    os.mkdir("folder")
    assert os.listdir("folder") == []
    shutil.rmtree("a")


@check
def links():
    write("one", "1")
    os.link("one", "two")
    os.symlink(os.path.abspath("one"), "three")
    os.symlink("one", "four")
    write("two", "2")
    assert read("one") == read("three") == read("four") == "2" and os.path.samefile("one", "three")
    assert os.path.realpath("four") == os.path.abspath("one")
    fd = os.open("one", os.O_RDONLY)
    assert os.readlink("/proc/self/fd/%d" % fd) == os.path.abspath("one")
    os.close(fd)


@check
def memory():
    write("mapped", "x" * 8192)
    with open("mapped", "r+b") as stream:
        with mmap.mmap(stream.fileno(), 0) as m:
            m[0:3] = b"abc"
            m.flush()
    assert read("mapped").startswith("abcx")


@check
def databases():
    with sqlite3.connect("base.db") as base:
        assert base.execute("select n from t").fetchall() == [(1,)]
        base.execute("insert into t values (2)")
    base.close()
    with sqlite3.connect("base.db") as base:
        base.execute("pragma journal_mode = wal")
        base.execute("insert into t values (3)")
    base.close()
    assert sqlite3.connect("base.db").execute("select count(*) from t").fetchone() == (3,)
    with shelve.open("shelf") as shelf:
        shelf["key"] = [1, 2]
    with shelve.open("shelf") as shelf:
        assert shelf["key"] == [1, 2]


@check
def archives():
    write("packed", "text")
    with zipfile.ZipFile("a.zip", "w") as z:
        z.write("packed")
    with tarfile.open("a.tar.gz", "w:gz") as t:
        t.add("packed")
        t.add(os.path.abspath(__file__), "program")
    os.unlink("packed")
    with tarfile.open("a.tar.gz") as t:
        t.extractall("out")
    with zipfile.ZipFile("a.zip") as z:
        z.extractall("out")
    assert read("out/packed") == "text" and os.stat("out/program").st_mtime == os.stat(__file__).st_mtime


@check
def temporary():
    with tempfile.NamedTemporaryFile("w+") as stream:
        stream.write("x")
        stream.flush()
        assert read(stream.name) == "x"
    with tempfile.TemporaryDirectory() as folder:
        write(os.path.join(folder, "f"), "y")
    assert not os.path.exists(folder)
    with tempfile.TemporaryFile() as stream:
        stream.write(b"z")
    libc = ctypes.CDLL(None)
    libc.tmpfile.restype = ctypes.c_void_p
    assert libc.tmpfile()


@check
def processes():
    def sh(command):
        return subprocess.run(command, shell=True, check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout

    assert sh("echo made > by-shell && cp -p by-shell copy && mv copy moved && sed -i s/made/edited/ moved && cat moved") == "edited\n"
    assert sh("mkdir -p x/y && cd x/y && pwd").strip() == os.path.abspath("x/y")
    assert sh("printf '#!/bin/sh\necho ran $0 $1' > x/run && chmod +x x/run && x/run one") == "ran x/run one\n"
    assert sh("PATH=$PWD/x:$PATH run two").startswith("ran ")
    assert sh("find x -type f | sort") == "x/run\n"
    assert sh("tar cf - x | (mkdir z && cd z && tar xf - && ls x)") == "run\ny\n"
    assert sh("rm -r x z && ls -d x z 2>/dev/null || echo none") == "none\n"
    assert sh("ls -R / >/dev/null 2>&1 & kill $!; echo ok") == "ok\n"


@check
def cleared():
    """Children that get an environment of their own, without what makes them see the scratch."""
    shell = shutil.which("sh")
    for number, env in enumerate(({}, {"PATH": os.environ["PATH"]}, {"LD_PRELOAD": ""})):
        subprocess.run([shell, "-c", "echo %d >>bare" % number], env=env, check=True)
    subprocess.run(["env", "-i", shell, "-c", "echo 3 >>bare"], check=True)
    os.posix_spawn(shell, ["sh", "-c", "echo 4 >>bare"], {})
    assert os.wait()[1] == 0 and read("bare") == "0\n1\n2\n3\n4\n", read("bare")
    assert subprocess.check_output([shell, "-c", "cat bare; echo $NAME"], env={"NAME": "kept"}, universal_newlines=True) == read("bare") + "kept\n"


@check
def repositories():
    if not shutil.which("git"):
        return
    env = dict(os.environ, HOME=os.getcwd(), GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a", GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a")

    def git(*arguments):
        return subprocess.run(("git",) + arguments, check=True, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True).stdout

    git("init", "repo")
    write("repo/file", "text")
    git("-C", "repo", "add", "file")
    git("-C", "repo", "commit", "-m", "first")
    git("clone", "repo", "clone")
    assert read("clone/file") == "text" and git("-C", "clone", "status", "--short") == ""


@check
def compilers():
    if not shutil.which("gcc"):
        return
    write("answer.c", "int answer(void) { return 42; }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", "answer.so", "answer.c"], check=True)
    assert ctypes.CDLL(os.path.abspath("answer.so")).answer() == 42
    write("main.c", '#include <stdio.h>\nint main(void) { return puts("hello") < 0; }\n')
    subprocess.run(["gcc", "-o", "main", "main.c"], check=True)
    assert subprocess.check_output(["./main"]) == b"hello\n"


@check
def modules():
    os.mkdir("package")
    write("package/__init__.py", "from .part import value\n")
    write("package/part.py", "value = 7\n")
    sys.path.insert(0, os.getcwd())
    import package
    assert package.value == 7 and package.__file__ == os.path.abspath("package/__init__.py")
    write("late.py", "value = 8\n")
    import late
    assert late.value == 8


def worker(number):
    write("by-worker-%d" % number, str(number))
    return os.getpid()


@check
def workers():
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            pool.map(worker, range(8))
        assert len(glob.glob("by-worker-*")) == 8
    with multiprocessing.Manager() as manager:
        shared = manager.dict()
        shared["x"] = 1
        assert dict(shared) == {"x": 1}


def taker(number):
    """How many of the user's files this process got, by each of two ways that let only one have a file."""
    got = 0
    for i in range(FILES):
        for call in (lambda: os.rename("queue/%d" % i, "queue/%d-%d" % (i, number)), lambda: os.unlink("spool/%d" % i)):
            try:
                call()
                got += 1
            except FileNotFoundError:
                pass
    return got


@check
def queues():
    with multiprocessing.get_context("fork").Pool(4) as pool:
        got = sum(pool.map(taker, range(4), 1))
    assert got == 2 * FILES and len(os.listdir("queue")) == FILES and not os.listdir("spool"), (got, os.listdir("queue"), os.listdir("spool"))


@check
def closed():
    """A folder that the run itself has closed for writing: what is in it can be changed, but its names cannot."""
    os.chmod("done", 0o555)
    os.chmod("done/one", 0o600)
    write("done/two", "changed")
    assert stat.S_IMODE(os.stat("done").st_mode) == 0o555 and stat.S_IMODE(os.stat("done/one").st_mode) == 0o600 and read("done/two") == "changed"
    if os.geteuid():
        for call in (lambda: write("done/three", "x"), lambda: os.unlink("done/one"), lambda: os.rename("done/one", "one")):
            try:
                call()
            except PermissionError:
                continue
            raise AssertionError(os.listdir("done"))


@check
def sockets():
    server = socket.socket(socket.AF_UNIX)
    server.bind("sock")
    server.listen(1)
    client = socket.socket(socket.AF_UNIX)
    client.connect(os.path.join(os.getcwd(), "sock") if len(os.getcwd()) < 90 else "sock")
    assert stat.S_ISSOCK(os.stat("sock").st_mode)
    os.mkfifo("fifo")
    assert stat.S_ISFIFO(os.stat("fifo").st_mode)


@check
def pipes():
    """Named ones, that were there before and that were not; whichever end is opened first."""
    os.mkfifo("pipe-made")
    for name in ("pipe", "pipe-made"):
        for first, second in (("rb", "wb"), ("wb", "rb")):
            child = subprocess.Popen(["cat", name] if first == "rb" else ["sh", "-c", "echo through >" + name], stdout=subprocess.PIPE)
            with open(name, second) as stream:
                text = stream.write(b"through\n") and b"" if second == "wb" else stream.read()
            assert (text or child.communicate()[0]) == b"through\n"
            assert child.wait() == 0
        fd = os.open(name, os.O_RDWR | os.O_NONBLOCK)
        os.write(fd, b"x")
        assert os.read(fd, 2) == b"x"
        os.close(fd)


@check
def devices():
    with open("/dev/null", "w") as null:
        null.write("x")
    with open("/proc/self/comm", "w") as comm:
        comm.write("named")
    with open("/dev/shm/cuwhy-everyday-%d" % os.getpid(), "w") as shared:
        os.fchmod(shared.fileno(), 0o600)
    os.unlink(shared.name)
    leader, follower = os.openpty()
    os.write(leader, b"x\n")
    assert os.read(follower, 2) == b"x\n"


@check
def refusals():
    for wrong, call in ((FileNotFoundError, lambda: open("not/there", "w")), (FileExistsError, lambda: os.mkdir(".")),
                        (IsADirectoryError, lambda: open(".", "w")), (NotADirectoryError, lambda: os.listdir(__file__))):
        try:
            call()
        except wrong:
            continue
        raise AssertionError(wrong)
    if os.geteuid():
        try:
            open("/etc/cuwhy-not-mine", "w")
        except PermissionError:
            return
        raise AssertionError("/etc")


def plant(folder):
    os.makedirs(os.path.join(folder, "folder", "sub"))
    for name, text in (("old.txt", "old\n"), ("folder/inner", "inner\n"), ("folder/other", "other\n"), ("folder/sub/deep", "deep\n")):
        write(os.path.join(folder, name), text)
    try:
        os.setxattr(os.path.join(folder, "folder"), "user.kept", b"1")
    except OSError as e:
        assert e.errno == 95, e    # this file system has none
    os.mkfifo(os.path.join(folder, "pipe"))
    for name, names in (("queue", range(FILES)), ("spool", range(FILES)), ("done", ("one", "two"))):
        os.mkdir(os.path.join(folder, name))
        for inner in names:
            write(os.path.join(folder, name, str(inner)), "mine")
    base = sqlite3.connect(os.path.join(folder, "base.db"))
    base.execute("create table t (n)")
    base.execute("insert into t values (1)")
    base.commit()
    base.close()


def main():
    os.chdir(sys.argv[1])
    failed = []
    for function in HELD:
        try:
            function()
        except Exception as e:
            import traceback
            out = io.StringIO()
            traceback.print_exc(file=out)
            failed.append("%s: %r\n%s" % (function.__name__, e, out.getvalue()))
    print("\n".join(failed) if failed else "all %d held" % len(HELD))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
