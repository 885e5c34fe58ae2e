# SPDX-License-Identifier: Apache-2.0
"""`cuwhy doctor` and bad input: drivers that misbehave, broken trees and wheels, absurd variables. Always an answer."""
import fcntl
import json
import os
import re
import socket
import stat
import subprocess
import sys

import harness
from rules_doctor import TORCH, doctor, environment
from toolbox import PATIENCE, Skip, same

FINDING, UNJUDGED = 1, 2


def answer(box, *options, **env):
    """The doctor's JSON and exit status; most rules here are about getting an answer at all."""
    run = box.plain([box.cuwhy, "doctor", "--json"] + list(options), **env)
    return told(run)


def told(run):
    assert not run.timed_out, "still running\n" + run.err
    same(run.status in (0, FINDING, UNJUDGED), True, "exit %d\n%s" % (run.status, run.err))
    return json.loads(run.out), run.status


def misbehaving(box, how, *options, nvml="gpu", **env):
    folder = os.path.join(box.scratch, "bad")
    os.makedirs(folder, exist_ok=True)
    link = os.path.join(folder, "libcuda.so.1")
    if not os.path.exists(link):
        os.symlink(box.library("bad_libcuda"), link)
    return answer(box, "--timeout", "1", *options, LD_LIBRARY_PATH=folder + ":" + box.sim, CUWHY_SIM="h200", CUWHY_SIM_NVML=nvml,
                  BAD_CUDA=how, **env)


# ---- the driver ----

def rule__a_libcuda_that_hangs_or_dies_is_a_finding(box):
    for how in ("hang", "hang-load", "hang-name", "crash", "crash-load", "abort", "exit", "exit-load"):
        verdict, status = misbehaving(box, how)
        same((verdict["cause"], status), ("driver-fails", FINDING), how)
        words = "did not answer" if "hang" in how else "crashed" if how in ("crash", "crash-load", "abort") else "ended"
        same(words in json.dumps(verdict["why"] + verdict["evidence"]) or words in verdict["facts"].get("driver.why", ""), True,
             "%s: %s" % (how, verdict["facts"].get("driver.why")))


def rule__both_libraries_that_hang_are_one_finding(box):
    verdict, status = misbehaving(box, "hang", nvml="gpu,hang=nvmlInit_v2")
    same((verdict["cause"], status), ("driver-fails", FINDING), "cause")
    same(len([c for c in verdict["checks"] if c["status"] == "FAIL"]), 1, "failures")


def rule__answers_of_a_driver_that_cannot_be_are_survived(box):
    for how in ("strange", "many", "numbers", "attributes", "bytes", "noise", ""):
        verdict, _ = misbehaving(box, how)
        same("cause" in verdict, True, how)
        text = box.plain([box.cuwhy, "doctor", "--timeout", "1"], LD_LIBRARY_PATH=os.path.join(box.scratch, "bad") + ":" + box.sim, CUWHY_SIM="h200",
                         CUWHY_SIM_NVML="gpu", BAD_CUDA=how)
        same(re.findall(r"[\x00-\x08\x0b-\x1f\x7f]", text.out), [], "control characters after " + how)


def rule__a_libcuda_that_is_no_library_is_named(box):
    folder = os.path.join(box.scratch, "lib")
    os.makedirs(folder)
    path = os.path.join(folder, "libcuda.so.1")
    with open(os.path.join(box.sim, "libcuda.so.1"), "rb") as stream:
        real = stream.read()
    for name, bytes_ in (("empty", b""), ("a text", b"GROUP ( libcuda.so )\n"), ("cut", real[:4000]), ("the header alone", real[:64]),
                         ("of another machine", real[:18] + b"\xb7\x00" + real[20:])):
        with open(path, "wb") as stream:
            stream.write(bytes_)
        verdict, status = answer(box, LD_LIBRARY_PATH=folder, CUWHY_SIM="h200")
        # the loader skips a library for another machine and tries the next one
        right = ("driver-library-broken",) if name != "of another machine" else ("driver-library-broken", "no-gpu", "container-without-gpu", "driver-not-installed")
        if not os.path.exists("/dev/nvidiactl"):
            right += ("no-gpu", "container-without-gpu")
        same((verdict["cause"] in right, status), (True, FINDING), "%s: %s" % (name, verdict["cause"]))


def rule__timeouts_that_are_none_are_refused(box):
    for word in ("0", "-1", "601", "1e3", "", "9" * 40):
        run = box.plain([box.cuwhy, "doctor", "--timeout", word])
        same((run.status, "--timeout" in run.err), (2, True), word)


# ---- trees ----

def put(root, path, content=""):
    full = os.path.join(root, path.lstrip("/"))
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "wb") as stream:
        stream.write(content if isinstance(content, bytes) else content.encode())
    return full


def tree(box, name="tree"):
    """A machine with one GPU and a virtual environment."""
    root = os.path.join(box.scratch, name)
    gpu = "/sys/bus/pci/devices/0000:01:00.0/"
    for path, text in ((gpu + "vendor", "0x10de\n"), (gpu + "device", "0x2330\n"), (gpu + "class", "0x030200\n"),
                       ("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n"),
                       ("/proc/modules", "nvidia 1 2 nvidia_uvm, Live 0x0\nnvidia_uvm 1 0 - Live 0x0\n"), ("/etc/os-release", "ID=debian\nVERSION_ID=12\n"),
                       ("/proc/self/environ", "CUDA_VISIBLE_DEVICES=0\0HOME=/home/xyzzy\0"), ("/v/pyvenv.cfg", "home = /usr/bin\nversion = 3.12.1\n"),
                       ("/usr/bin/python3.12", ""), ("/var/log/kern.log", ""), ("/etc/ld.so.cache", ""), ("/etc/ld.so.conf", "/usr/lib\n"),
                       (SITE + "torch/__init__.py", ""), (SITE + "torch/version.py", TORCH % ("2.11.0+cu130", "'13.0'")),
                       (SITE + "torch/lib/libtorch_cuda.so", ""), (SITE + "torch/lib/libc10.so", ""),
                       (SITE + "torch-2.11.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: torch\nVersion: 2.11.0\nRequires-Dist: triton==3.6.0\n"),
                       (SITE + "torch-2.11.0.dist-info/RECORD", "torch/__init__.py,,0\ntorch/lib/libtorch_cuda.so,,5\n"),
                       ("/usr/lib/libcuda.so.1", "")):
        put(root, path, text)
    os.makedirs(os.path.join(root, "v/bin"))
    os.symlink("/usr/bin/python3.12", os.path.join(root, "v/bin/python"))
    return root


SITE = "/v/lib/python3.12/site-packages/"


def files_of(root):
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names)


def judge_tree(box, root, what):
    verdict, status = answer(box, "--root", root, "--python", "/v")
    # a folder that is no longer an environment is rejected with a message
    same("cause" in verdict or (status == UNJUDGED and "--python" in verdict["failure"]["message"]), True, "%s: %s" % (what, verdict))
    text = box.plain([box.cuwhy, "doctor", "--root", root, "--python", "/v"])
    same((text.status, re.findall(r"[\x00-\x08\x0b-\x1f\x7f]", text.out)), (status, []), "%s: status, control characters" % what)
    return verdict, status


def rule__whatever_stands_in_place_of_a_file_is_survived(box):
    """Every file of a machine in turn: gone, a link to nothing or to itself, a folder, a pipe, a socket, endless, binary."""
    root = tree(box)
    judge_tree(box, root, "as it is")

    def endless(path):
        with open(path, "wb") as stream:
            stream.truncate(1 << 40)

    def listen(path):
        here = os.getcwd()
        os.chdir(os.path.dirname(path))     # names of sockets are short
        try:
            with socket.socket(socket.AF_UNIX) as s:
                s.bind(os.path.basename(path))
        finally:
            os.chdir(here)

    ways = {"gone": lambda p: None, "link to nothing": lambda p: os.symlink("nowhere", p), "link to itself": lambda p: os.symlink(os.path.basename(p), p),
            "link to the root": lambda p: os.symlink("/", p), "folder": os.mkdir, "pipe": os.mkfifo, "socket": listen, "endless": endless,
            "binary": lambda p: open(p, "wb").write(bytes(range(256)) * 64), "one line": lambda p: open(p, "wb").write(b"A" * 3000000)}
    for path in files_of(root):
        target = os.readlink(path) if os.path.islink(path) else None
        if target is None:
            with open(path, "rb") as stream:
                saved = stream.read()
        for name, make in ways.items():
            os.unlink(path)
            make(path)
            judge_tree(box, root, "%s: %s" % (path, name))
            if os.path.isdir(path) and not os.path.islink(path):
                os.rmdir(path)
            elif os.path.lexists(path):
                os.unlink(path)
            if target is not None:
                os.symlink(target, path)
            else:
                put("/", path, saved)


def rule__folders_that_cannot_be_read_are_told_of(box):
    root = tree(box)
    prefix = []
    if os.getuid() == 0:
        prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        if subprocess.run(prefix + [box.cuwhy, "--version"], capture_output=True, cwd="/").returncode != 0:
            raise Skip("root reads everything, and nobody else can run cuwhy here")
        os.chmod(box.scratch, 0o755)
    for folder in sorted({os.path.dirname(p) for p in files_of(root)}):
        mode = stat.S_IMODE(os.stat(folder).st_mode)
        os.chmod(folder, 0)
        try:
            run = box.plain(prefix + [box.cuwhy, "doctor", "--json", "--root", root, "--python", "/v"])
            verdict, _ = told(run)
            same("cause" in verdict or "--python" in verdict["failure"]["message"], True, folder)
        finally:
            os.chmod(folder, mode)


def rule__an_environment_that_is_half_there_is_a_finding(box):
    def broken(change):
        folder = environment(box, "2.11.0+cu130", "13.0")
        packages = os.path.join(folder, "lib", "python%d.%d" % sys.version_info[:2], "site-packages")
        change(packages)
        verdict = doctor(box, "--python", folder)
        subprocess.run(["rm", "-rf", folder], check=True)
        return verdict, [c["cause"] for c in verdict["checks"] if c["status"] in ("FAIL", "WARN")]

    def gone(packages):
        subprocess.run(["rm", "-rf", os.path.join(packages, "torch")], check=True)

    def no_files(packages):
        put(packages, "torch-2.11.0.dist-info/RECORD", "torch/__init__.py,,\ntorch/lib/libtorch.so,,\ntorch/_C.so,,\n")

    def no_library(packages):
        put(packages, "torch/lib/libtorch_global_deps.so", "")

    def cut(packages):
        put(packages, "torch/lib/libtorch_cuda.so", b"\x7fELF\x02\x01\x01")

    same("wheel-packaging-defect" in broken(no_files)[1], True, "files of the list are missing")
    same(broken(no_library)[1] != [], True, "a library of 0 bytes")
    same(broken(cut)[1] != [], True, "a library that was cut")
    verdict, found = broken(gone)
    same(found != [] or verdict["facts"].get("torch.found") is False, True, "torch is listed, and gone")


def rule__damaged_libraries_are_survived(box):
    root = tree(box)
    with open(os.path.join(box.sim, "libcuda.so.1"), "rb") as stream:
        good = stream.read()
    places = [SITE + "torch/lib/libtorch_cuda.so", SITE + "torch/lib/libc10.so", SITE + "ext/_C.so", "/usr/lib/libcuda.so.1"]
    for n, at in enumerate(list(range(0, 64, 3)) + list(range(64, 1024, 97)) + [len(good) - 3000 + 61 * k for k in range(40)]):
        bad = bytearray(good)
        for k in range(4):
            bad[at + k] = (0xff, 0x80, 0x7f, 0x00)[(n + k) % 4]
        for path in places:
            put(root, path, bytes(bad))
        judge_tree(box, root, "bytes at %d" % at)


def rule__words_in_files_do_not_speak_to_the_terminal(box):
    root, red = tree(box), "\x1b[31mRED\x07"
    for path, text in ((SITE + "torch/version.py", "__version__ = '2.11.0%s+cu130'\ncuda = '13.0%s'\n" % (red, red)),
                       (SITE + "torch-2.11.0.dist-info/METADATA", "Name: torch\nVersion: 2.11.0%s\nRequires-Dist: triton%s==3.6.0\nRequires-Dist: foo==1%s\n" % (red, red, red)),
                       (SITE + "foo-2.dist-info/METADATA", "Name: foo\nVersion: 2%s\n" % red), (SITE + "torch-2.11.0.dist-info/RECORD", "torch/%s.so,,5\n" % red),
                       ("/proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06%s\n" % red),
                       ("/proc/self/environ", "CUDA_VISIBLE_DEVICES=0%s\0NCCL_%s=1\0LD_LIBRARY_PATH=/x%s\0PYTORCH_CUDA_ALLOC_CONF=a%s:1\0" % (red, red, red, red)),
                       ("/v/pyvenv.cfg", "home = /usr/bin%s\nversion = 3.12.1\n" % red)):
        put(root, path, text)
        judge_tree(box, root, path)
    bundle = os.path.join(box.scratch, "bundle.json")
    for words in (["--root", root, "--python", "/v", "--recommend", "--bundle", bundle], [bundle, "--recommend"]):
        run = box.plain([box.cuwhy, "doctor"] + words)
        same((run.status in (0, 1, 2), re.findall(r"[^\n]*[\x00-\x08\x0b-\x1f\x7f][^\n]*", run.out)), (True, []), "control characters")


def rule__what_is_no_environment_is_refused_in_words(box):
    pipe = os.path.join(box.scratch, "pipe")
    os.mkfifo(pipe)
    for path in (pipe, "/dev/zero", "/etc/passwd", box.scratch, "/proc"):
        run = box.plain([box.cuwhy, "doctor", "--python", path])
        same((run.timed_out, run.status, path in run.err), (False, 2, True), run.err)


# ---- variables ----

NAMES = ("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "NCCL_DEBUG", "NCCL_SOCKET_IFNAME", "CUDA_HOME", "PATH",
         "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "TORCH_CUDA_ARCH_LIST", "CUDA_MPS_PIPE_DIRECTORY", "TRITON_PTXAS_PATH", "CUDA_CACHE_PATH", "HOME",
         "CUDA_LAUNCH_BLOCKING", "NVIDIA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "LD_PRELOAD")


def rule__absurd_variables_are_survived(box):
    values = ["", " ", ",", ":", "=", "A" * 120000, "0," * 60000, ":" * 100000, "/x:" * 40000, "\x1b[31mred\x1b[0m\r\n\x07", "%s%n%d", "../" * 30000,
              "-1", "9" * 5000, "GPU-", "max_split_size_mb:" * 6000, "'\"\\\n", "[" * 50000]
    values = [v.encode() for v in values] + [bytes(range(1, 256)) * 100, b"\xff\xfe\xc0\x80", b"\xed\xa0\x80"]
    base = {k: v.encode() for k, v in box.env(CUWHY_SIM="h200", CUWHY_SIM_NVML="gpu").items()}
    for name in NAMES:
        for value in values:
            env = dict(base, LD_LIBRARY_PATH=box.sim.encode())
            env[name] = value + b":" + box.sim.encode() if name == "LD_LIBRARY_PATH" else value
            run = subprocess.run([box.cuwhy, "doctor", "--timeout", "5"], env={k.encode(): v for k, v in env.items()}, capture_output=True, timeout=PATIENCE)
            same((run.returncode in (0, 1, 2), run.stdout[:7]), (True, b"cuwhy: "), "%s=%r: %d" % (name, value[:40], run.returncode))
            same(re.findall(rb"[\x00-\x08\x0b-\x1f\x7f]", run.stdout), [], "control characters after %s=%r" % (name, value[:40]))
            run.stdout.decode("utf-8")
    env = dict(base, LD_LIBRARY_PATH=box.sim.encode(), **{"CUDA_NO_SUCH_%d" % i: b"x" * 50 for i in range(5000)})
    run = subprocess.run([box.cuwhy, "doctor", "--json"], env=env, capture_output=True, timeout=PATIENCE)
    same(json.loads(run.stdout)["cause"] != "", True, "5000 variables")


def rule__a_variable_of_a_megabyte_is_survived(box):
    """The kernel passes none longer than 128 KiB, but a copied tree and a bundle may have one."""
    root = tree(box)
    for value in (b"A" * 1000000, bytes(range(1, 256)) * 4000, b"0," * 500000):
        put(root, "/proc/self/environ", b"".join(n.encode() + b"=" + value + b"\0" for n in NAMES[:6]))
        judge_tree(box, root, "variables of a megabyte")
        path = put(box.scratch, "big.json", json.dumps({"cuwhy_bundle": 1, "variables": {n: value.decode("latin-1") for n in NAMES}}))
        run = box.plain([box.cuwhy, "doctor", path])
        same(run.status in (0, 1, 2), True, run.err[:200])


# ---- bundles ----

def rule__a_bundle_is_judged_alike_elsewhere(box):
    path = os.path.join(box.scratch, "bundle.json")
    machines = (("h200", "gpu", {}), ("h200,fail=cuInit:1:802", "gpu", {}), ("h200,devices=2", "gpu,gpu,mode=2", {}), ("h200", "gpu,remap=failed", {}),
                ("rtx4090", "gpu,driver=535.54.03,cuda=12020", {}), ("a100,driver=12020", "gpu,driver=535.54.03,cuda=12020", {"CUDA_VISIBLE_DEVICES": "3"}),
                ("h200", "gpu", {"NCCL_P2P_DISABLE": "maybe", "PYTORCH_CUDA_ALLOC_CONF": "max_split:1"}), ("nodevice", "gpu", {}))
    for torch in (None, ("2.11.0+cu130", "13.0"), ("2.11.0+cpu", None), ("1.13.1+cu117", "11.7")):
        python = ["--python", environment(box, *torch)] if torch else []
        for sim, nvml, env in machines:
            first = doctor(box, "--bundle", path, *python, sim=sim, nvml=nvml, **env)
            again, _ = answer(box, path, USER="somebody", HOME="/nowhere")
            for key in ("cause", "certainty", "title", "why", "checks"):
                same(again[key], first[key], "%s with %s %s and %s" % (key, sim, nvml, torch))


def rule__a_bundle_tells_nothing_of_people(box):
    """Names, home folders and secrets in every place that is collected."""
    home = os.path.join(box.scratch, "people", "xyzzyuser")
    secret = "plughsecret"
    os.makedirs(os.path.join(home, "lib"))
    venv = environment(box, "2.11.0+cu130", "13.0")
    moved = os.path.join(home, "venv")
    os.rename(venv, moved)
    packages = os.path.join(moved, "lib", "python%d.%d" % sys.version_info[:2], "site-packages")
    put(packages, "mine.pth", home + "/lib\n/home/frobozz/src\n")
    put(packages, "mine-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: mine\nVersion: 1.0\nAuthor: xyzzyuser\n")
    put(packages, "mine-1.0.dist-info/direct_url.json", '{"url": "https://xyzzyuser:%s@example.org/x"}' % secret)
    path = os.path.join(box.scratch, "bundle.json")
    child = subprocess.Popen([box.python, "-c", "import sys; sys.stdin.read()", "--token=" + secret, "--user", "xyzzyuser"], stdin=subprocess.PIPE)
    try:
        doctor(box, "--bundle", path, "--python", moved, nvml="gpu,proc=%d:1G" % child.pid, HOME=home, USER="xyzzyuser", LOGNAME="xyzzyuser",
               CUDA_CACHE_PATH=home + "/cache", NCCL_API_KEY=secret, TORCH_HOME="/home/frobozz/torch", CUDA_HOME="/Users/frobozz/cuda",
               HF_TOKEN=secret, NCCL_TOPO_FILE="https://xyzzyuser:%s@example.org/t" % secret, TORCHINDUCTOR_CACHE_DIR="/tmp/torchinductor_xyzzyuser",
               NCCL_DEBUG_FILE="/data/xyzzyuser/nccl.%h.log", WANDB_API_KEY=secret, CUDA_PASSWORD=secret)
    finally:
        child.stdin.close()
        child.wait()
    with open(path, encoding="utf-8") as stream:
        text = stream.read()
    names = [w for w in ("xyzzyuser", "frobozz", secret, home) if w in text]
    same(names, [], "names in the bundle: %s" % re.findall(r'.*(?:xyzzyuser|frobozz|%s).*' % secret, text)[:5])
    name = socket.gethostname()
    if len(name) > 3 and name not in ("localhost",):
        same(re.findall(r"\b%s\b" % re.escape(name), text), [], "host name")


def rule__a_bundle_of_a_tree_tells_nothing_of_its_people(box):
    root = tree(box)
    put(root, "/etc/hostname", "plughhost\n")
    put(root, "/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nxyzzyuser:x:1000:1000:Xyzzy:/data/homes/xyzzyuser:/bin/bash\n")
    put(root, "/proc/self/environ", "HOME=/data/homes/xyzzyuser\0USER=xyzzyuser\0CUDA_CACHE_PATH=/data/homes/xyzzyuser/c\0LD_LIBRARY_PATH=/data/homes/xyzzyuser/lib\0")
    put(root, "/var/log/kern.log", "Nov 15 10:00:00 plughhost kernel: [1.0] NVRM: Xid (PCI:0000:01:00): 79, pid=1, name=python, GPU has fallen off the bus.\n")
    put(root, "/proc/sys/kernel/hostname", "plughhost\n")
    path = os.path.join(box.scratch, "bundle.json")
    answer(box, "--root", root, "--python", "/v", "--bundle", path)
    with open(path, encoding="utf-8") as stream:
        text = stream.read()
    same([w for w in ("xyzzyuser", "plughhost") if w in text], [], "in it: %s" % re.findall(r".*(?:xyzzyuser|plughhost).*", text)[:5])


def rule__a_bundle_does_not_take_the_place_of_a_device(box):
    """Renaming a file over /dev/null would replace it for the whole machine."""
    pipe = os.path.join(box.scratch, "pipe")
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    fcntl.fcntl(end, fcntl.F_SETPIPE_SZ if hasattr(fcntl, "F_SETPIPE_SZ") else 1031, 1 << 20)
    try:
        run = box.plain([box.cuwhy, "doctor", "--bundle", pipe], LD_LIBRARY_PATH=box.sim, CUWHY_SIM="h200", CUWHY_SIM_NVML="gpu")
        same((run.timed_out, stat.S_ISFIFO(os.stat(pipe).st_mode)), (False, True), "a pipe")
        same(os.read(end, 17), b'{\n "cuwhy_bundle"', "what came through it")
    finally:
        os.close(end)


def rule__a_bundle_that_cannot_be_written_is_told(box):
    for path in ("/proc/nowhere/x", box.scratch, os.path.join(box.scratch, "no", "folder")):
        run = box.plain([box.cuwhy, "doctor", "--bundle", path], LD_LIBRARY_PATH=box.sim, CUWHY_SIM="h200", CUWHY_SIM_NVML="gpu")
        same((run.status, run.err.startswith("cuwhy: ")), (2, True), run.err)


def rule__files_that_are_no_bundles_are_refused_in_words(box):
    cases = (b"", b"{}", b"[]", b"null", b"{", b"\xff\xfe", b"\0" * 100, b"[" * 100000, b'{"cuwhy_bundle": 2}', b'{"cuwhy_bundle": "1"}', b'{"cuwhy_bundle": 1, "x": 1}',
             b'{"cuwhy_bundle": 1, "nvml": []}', b'{"cuwhy_bundle": 1, "python": {"environments": [null]}}', b'{"cuwhy_bundle": 1, "code": [{"env": 99}]}',
             b'{"cuwhy_bundle": 1, "code": [{"env": -1, "torch": true, "archs": "sm_0 sm_999999999999 compute_@ x"}]}')
    for text in cases:
        path = put(box.scratch, "no.json", text)
        run = box.plain([box.cuwhy, "doctor", path])
        same((run.status, run.err.startswith("cuwhy: ") and run.err.count("\n") <= 3), (2, True), "%r: %s" % (text[:60], run.err[:300]))
    for path in (box.scratch, "/dev/zero" if os.path.exists("/dev/zero") else box.scratch):
        run = box.plain([box.cuwhy, "doctor", path])
        same((run.timed_out, run.status), (False, 2), path)


SECRETS = {
    "NVIDIA_API_KEY": "nvapi-%s", "nvidia_api_key": "nvapi-%s", "TORCH_TOKEN": "%s", "torch_token": "%s", "NVIDIA_NGC_KEY": "%skey",
    "TORCH_HUB_AUTH": "Bearer %s", "TRITON_SERVER_PWD": "%s", "TORCHX_LICENSE": "%s", "TORCH_HOME": "https://bob:%s@host/x",
    "XLA_URL": "bob:%s@host:22/x", "TORCH_S3": "AKIA%sAAAAAAAAAAAAA", "TORCH_GH": "ghp_%saaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "NVIDIA_SAS": "https://x.blob/?sv=1&sig=%s", "JAX_JWT": "eyJhbGciOiJIUzI1NiJ9.%s.x", "TORCH_SSH": "-----BEGIN OPENSSH KEY-----%s",
    "WANDB_API_KEY": "%s", "HF_TOKEN": "%s", "AWS_SECRET_ACCESS_KEY": "%s", "PIP_INDEX_URL": "https://u:%s@pypi", "TORCH_PSK": "%s",
    "CUDA_SALT": "%s", "NVIDIA_COOKIE": "session=%s", "TORCH_SIGNATURE": "%s",
}


def rule__secrets_in_variables_leave_no_trace_in_bundle_recording_or_page(box):
    planted = {name: form % ("plugh%02dx" % i) for i, (name, form) in enumerate(SECRETS.items())}
    run = box.under(box.script("import cudrv\ncudrv.init()\ncudrv.launch(cudrv.kernel('nop'), (1, 80000), (1,))\n"), **planted)
    bundle, page, other = (os.path.join(box.scratch, n) for n in ("bundle.json", "page.html", "bundle.html"))
    told = [run.err]
    for argv in (["doctor", "--bundle", bundle], ["doctor", "--json"], ["explain", "--json", run.folder],
                 ["report", "-o", page, run.folder], ["report", "-o", other, bundle]):
        made = harness.Run([box.cuwhy] + argv, box.env(**planted))
        told += [made.out, made.err]
    for path in [bundle, page, other] + [os.path.join(run.folder, n) for n in os.listdir(run.folder)]:
        with open(path, encoding="utf-8", errors="replace") as f:
            told.append(f.read())
    same(sorted(set(re.findall(r"plugh[0-9]{2}x", "".join(told)))), [], "secrets that were kept")
