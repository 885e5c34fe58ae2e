# SPDX-License-Identifier: Apache-2.0
"""The pages that the browser test opens: made from recordings of the simulated GPU, a core dump and snapshots."""
import glob
import json
import os
import re
import shutil
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
E2E = os.path.join(HERE, "..", "e2e")
sys.path[:0] = [E2E, os.path.join(HERE, "..", "snap"), os.path.join(HERE, "..", "job")]
import histories  # noqa: E402
import rules_blocks  # noqa: E402
import rules_hangs  # noqa: E402
import rules_kinds  # noqa: E402
import rules_oom  # noqa: E402
import run as e2e  # noqa: E402
import toolbox  # noqa: E402
import world  # noqa: E402

# a name that would close the data's element and start a script if it were ever parsed as markup
EVIL = "x</script><script>document.documentElement.dataset.ran=1<!-- \u2028 <img src=x onerror=document.documentElement.dataset.ran=2>.py"
MANY = rules_blocks.START + """
lines = [compile("torch.block_made(segment + %d * 512, 512, 1, 0)" % n, "line_%d.py" % n, "exec") for n in range(60)]
for step in range(60):
    torch.blocks_made(1 << 40, 2000)
    write(segment)
    torch.blocks_freed(1 << 40, 2000)
    exec(lines[step])
cudrv.launch(store, (2,), (64,), cudrv.u64(segment), ctypes.c_int64(1 << 40))
cudrv.synchronize()
"""

# what is kept lies between blocks that grow: the cache is useless, unless segments can be joined
GAPS = rules_blocks.START + """
MIB, at = 1 << 20, 1 << 40
torch.out_of_memory.argtypes = [ctypes.c_uint64, ctypes.c_int]


def made(size):
    global at
    at += 2 * size
    torch.block_made(at, size, 1, 0)
    return at, size, 1, 0


for step in range(1, 385):
    passing = [made(step * 3 * MIB), made(step * 2 * MIB)]
    made(5 * MIB)  # <- kept
    passing.append(made(step * 4 * MIB))
    for block in passing:
        torch.block_freed(*block)
torch.out_of_memory(step * 4 * MIB, 0)
raise MemoryError("CUDA out of memory. Tried to allocate ...")
"""

#each level calls the next from two lines : 2 to the power of 20 different stacks
STACKS = rules_blocks.START + """
def climb(level):
    if not level:
        torch.block_made(segment, 512, 1, 0)
        torch.block_freed(segment, 512, 1, 0)
        return
    climb(level - 1)
    climb(level - 1)


climb(20)
cudrv.launch(store, (64,), (64,), cudrv.u64(segment), ctypes.c_int64(1 << 40))
cudrv.synchronize()
"""

# PyTorch on a machine without a GPU
NO_GPU = """
import ctypes, os
ctypes.CDLL(os.environ["FAKE_TORCH"])
raise RuntimeError("Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver")
"""

# a GPU that is newer than the code in the wheel, and a name that must stay a name
BUNDLE = {"cuwhy_bundle": 1, "made_by": "cuwhy " + EVIL,
          "host": {"kernel": {"nvidia": True, "version": "535.54.03"}, "container": {"kind": "none"}, "wsl": {"version": 0},
                   "gpu": [{"address": "0000:01:00.0", "device": 9860, "driver": "nvidia", "answers": True}],
                   "node": [{"path": "/dev/nvidiactl", "exists": True, "error": 0}]},
          "variables": {}, "nvml": {"driver": "535.54.03", "cuda": 12020, "gpus": [{"name": "NVIDIA GeForce RTX 4090", "cc_major": 8, "cc_minor": 9, "compute_mode": 0}]},
          "cuda": {"init": 0, "version": 12020, "devices": [{"name": "NVIDIA GeForce RTX 4090", "cc_major": 8, "cc_minor": 9}]},
          "python": {"environments": [{"kind": "venv", "prefix": "/v/" + EVIL, "major": 3, "minor": 12,
                                       "torch": {"version": "2.11.0+cu130", "build": "cuda", "cuda": "13.0"}}]},
          "code": [{"env": 0, "torch": True, "archs": "sm_75 sm_80 sm_86 sm_90 compute_90@9.0"}]}

# memory samples are some time apart: only a program that takes a while has several
SLOW = ("for step in range(", "import time\nfor step in range("), ("    torch.block", "    time.sleep(0.01)\n    torch.block")


def slowly(program):
    for old, new in SLOW:
        assert old in program
        program = program.replace(old, new, 1)
    return program


class Pages:
    """Makes each page once; `path(name)` is where it is."""

    def __init__(self, build, folder):
        self.build, self.folder = os.path.abspath(build), folder
        cuwhy = os.path.join(self.build, "cuwhy")
        self.box = toolbox.Toolbox(cuwhy, toolbox.real_python(sys.executable), e2e.Builder(self.build))

    def path(self, name):
        return os.path.join(self.folder, name + ".html")

    def write(self, name, source, *options, status=0):
        made = subprocess.run([self.box.cuwhy, "report", *options, "-o", self.path(name), source], capture_output=True, text=True)
        assert made.returncode == status, "%s: %s%s" % (name, made.stdout, made.stderr)

    def without_charts(self, name):
        """The same page as a build without uPlot has it; returns its path."""
        template = os.path.join(self.folder, "without-charts.template")
        subprocess.run([sys.executable, os.path.join(HERE, "..", "..", "tools", "page.py"), self.folder, template, "--charts", "no"], check=True)
        with open(self.path(name), encoding="utf-8") as stream:
            whole = stream.read()
        with open(template, encoding="utf-8") as stream:
            page = stream.read()
        for part in ("data", "islands"):
            page = page.replace("@@cuwhy-%s@@" % part, whole.split(' id="cuwhy-%s">' % part, 1)[1].split("</script>", 1)[0])
        with open(self.path(name + "-without-charts"), "w", encoding="utf-8") as stream:
            stream.write(page)
        return self.path(name + "-without-charts")

    def record(self, name, program, script="program.py", torch=True, gpu="sim:tiny", options=()):
        """Runs a program and leaves its recording in FOLDER/NAME."""
        self.box.scratch = os.path.join(self.folder, name + "-run")
        path = os.path.join(self.box.scratch, script)
        os.makedirs(os.path.dirname(path))
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(program)
        more = {"PYTHONPATH": os.path.join(E2E, "site-packages")}
        if torch:
            # its memory is distinguished from others' by the name of its library
            library = self.box.library("fake_torch", "-lpthread", "-fexceptions")
            more["FAKE_TORCH"] = shutil.copy(library, os.path.join(self.box.scratch, "libc10.so"))
        run = self.box.under([self.box.python, path], *options, gpu=gpu, **more)
        assert run.status != 0, "%s was to fail: %s" % (name, run.err[-300:])
        return run.folder

    def case(self, name):
        with open(os.path.join(E2E, "cases", name + ".py"), encoding="utf-8") as stream:
            return stream.read()

    def snapshot(self, name, story, events=None):
        path = os.path.join(self.folder, name + ".pickle")
        command = [sys.executable, os.path.join(HERE, "..", "snap", "make_snapshot.py"), path, "--story", story]
        subprocess.run(command + (["--events", str(events)] if events else []), check=True, stdout=subprocess.DEVNULL)
        self.write(name, path)

    def spoil(self, name, folder, how):
        copy = os.path.join(self.folder, name + "-copy")
        shutil.copytree(folder, copy)
        for part in glob.glob(os.path.join(copy, "*.cwr")):
            how(part)
        return copy

    def with_checks(self, name, folder):
        """As if `cuwhy run` had run the doctor: what it found is in verdict.json."""
        copy = self.spoil(name, folder, lambda part: None)
        path = os.path.join(copy, "verdict.json")
        with open(path, encoding="utf-8") as stream:
            verdict = json.load(stream)
        verdict["checks"] = [{"id": "gpu", "label": "GPU", "status": "OK", "text": "NVIDIA H200", "cause": None, "command": None},
                             {"id": "runtime", "label": EVIL, "status": "FAIL", "text": "the driver is too old " + EVIL, "cause": "driver-too-old", "command": "apt install nvidia"}]
        with open(path, "w", encoding="utf-8") as stream:
            json.dump(verdict, stream)
        return copy

    def recount(self, name, blocks):
        """A copy whose dump has that many faulting blocks: the simulated GPU writes only a few."""
        with open(self.path(name), encoding="utf-8") as stream:
            page, n = re.subn(r'("warps": ?\d+, ?"blocks": ?)\d+', r"\g<1>%d" % blocks, stream.read())
        assert n == 1, n
        with open(self.path(name + "-recounted"), "w", encoding="utf-8") as stream:
            stream.write(page)
        return self.path(name + "-recounted")

    def bundle(self, name):
        path = os.path.join(self.folder, name + ".json")
        with open(path, "w", encoding="utf-8") as stream:
            json.dump(BUNDLE, stream)
        self.write(name, path)

    def job(self, name, plant, ranks, change=None):
        """A planted history of a job; `change` alters its folder."""
        folder = os.path.join(self.folder, name + "-job")
        w = world.World(7, ranks=ranks)
        w.folder = folder
        expect = plant(w)
        w.write(folder)
        if change:
            change(os.path.join(folder, "job-" + w.job, "attempt-0"), expect.first)
        self.write(name, folder)

    def make_jobs(self):
        self.job("job", histories.fault, 16, with_verdict)
        self.job("job-many", histories.fault, 4096)
        self.job("job-two", histories.two_at_once, 64)
        self.job("job-loose", histories.no_shared_event, 64)
        self.job("job-gone", histories.node_without_files, 64)
        self.job("job-absent", histories.straggler, 64)

    def make(self):
        self.make_jobs()
        fault = self.record("fault", rules_blocks.PAST)
        self.write("fault", fault)
        self.write("oom", self.record("oom", rules_oom.PIECES))
        self.write("gaps", self.record("gaps", GAPS, gpu="sim:rtx3060", options=("--memory-trace",)), "--what-if", "gpu=rtx4060")
        self.write("train", self.record("train", rules_kinds.train(60, 0.003)))
        growth = self.record("growth", slowly(rules_oom.GROWTH))
        self.write("growth", growth)
        self.write("totals", self.spoil("totals", growth, hide_epochs))
        self.write("refused", self.record("refused", self.case("shared_limit"), torch=False))
        self.write("ranks", self.record("ranks", self.case("victims_collective"), torch=False, gpu="sim:h200"))
        self.write("hostile", self.record("hostile", self.case("fault_oob"), script=EVIL, torch=False))
        self.write("hang", self.record("hang", rules_hangs.SYNC, torch=False, options=("--hang-after", "1s")))
        self.write("handled", self.record("handled", self.case("handled_then_real"), torch=False))
        self.write("many", self.record("many", slowly(MANY)))
        dump = os.path.join(self.folder, "alone.cudacore")
        shutil.copy(glob.glob(os.path.join(fault, "*.cudacore"))[0], dump)
        self.write("dump", dump)
        self.snapshot("snapshot", "fragmentation")
        self.snapshot("events", "train", 200000)
        self.write("cut", self.spoil("cut", fault, lambda part: os.truncate(part, os.path.getsize(part) // 2)))
        self.write("nomemory", self.spoil("nomemory", fault, hide_memory))
        self.write("stacks", self.record("stacks", STACKS))
        self.write("nogpu", self.record("nogpu", NO_GPU, gpu=None))
        self.write("nothing", self.record("nothing", "raise SystemExit(3)\n", torch=False, gpu=None))
        self.write("machine", self.with_checks("machine", fault))
        self.bundle("bundle")
        self.write("newer", self.spoil("newer", fault, raise_version), status=2)


def with_verdict(attempt, first):
    """The first rank has a verdict in full, and names that must stay names."""
    path = glob.glob(os.path.join(attempt, "rank-%d.*.json" % first[0]))[0]
    with open(path, encoding="utf-8") as stream:
        rank = json.load(stream)
    rank.update(command="python " + EVIL, message=EVIL, exception="RuntimeError", verdict=os.path.basename(path)[:-len("json")] + "verdict.json")
    verdict = {"schema": 1, "cause": "illegal-access-out-of-bounds", "certainty": "certain", "title": rank["title"], "because": "the address lies " + EVIL,
               "where": {"file": "/src/train.py", "shown": "train.py", "line": 61, "function": "step", "source": "y = kernel(x)  # " + EVIL},
               "why": ["thread 7 read past the end"], "fix": [{"text": "mask the last block", "command": "grep -n mask train.py"}]}
    for where, what in ((path, rank), (os.path.join(attempt, rank["verdict"]), verdict)):
        with open(where, "w", encoding="utf-8") as stream:
            json.dump(what, stream)


def hide_epochs(part):
    """As an older cuwhy wrote it: in the list of chunks, those of kind 18 (EPOCHS, 16 KiB) become unknown."""
    with open(part, "r+b") as stream:
        head = stream.read(20000)
        found = [at for at in range(0, len(head) - 16, 4) if struct.unpack_from("<I4xII", head, at) == (18, 16384, 0)]
        assert found, part
        for at in found:
            stream.seek(at)
            stream.write(struct.pack("<I", 30000))

#kinds of chunks, as the recorder numbers them; those of memory, and of all that is known of it over time
with open(os.path.join(HERE, "..", "..", "include", "cuwhy", "format.h"), encoding="utf-8") as source:
    CHUNKS = {name: int(number) for number, name in re.findall(r"X\((\d+), (\w+),", source.read().split("CW_CHUNKS(X)")[1].split("enum")[0])}
MEMORY = [CHUNKS[name] for name in "ALLOCATIONS BLOCKS FREED SITES TIMELINE EVENTS EPOCHS SITE_MARKS HISTORIES TURNS EVENT_LOG EVENT_SLOTS".split()]
KINDS = max(CHUNKS.values())


def hide_memory(part):
    """As if no memory had been recorded: these chunks become unknown."""
    with open(part, "r+b") as stream:
        head = stream.read(20000)
        at = next(at for at in range(0, len(head) - 16, 4) if struct.unpack_from("<I4xII", head, at) == (18, 16384, 0))
        kind = lambda place: struct.unpack_from("<I", head, place)[0]  # noqa: E731
        while 0 < kind(at - 16) <= KINDS:
            at -= 16
        hidden = 0
        for at in range(at, len(head) - 16, 16):
            if not 0 < kind(at) <= KINDS:
                break
            if kind(at) in MEMORY:
                stream.seek(at)
                stream.write(struct.pack("<I", 30000))
                hidden += 1
        assert hidden >= 5, (part, hidden)


def raise_version(part):
    with open(part, "r+b") as stream:
        stream.seek(8)
        stream.write(b"\xff\x7f")
