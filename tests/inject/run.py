# SPDX-License-Identifier: Apache-2.0
"""Every system call of the recorder fails in turn, and the program must not notice: make check-inject.

A call site is a call instruction in a copy of the recorder that is built without inlining. Each one that a scenario
reaches fails with each error, always or once, and the program's status and output must be those of the plain program.
Sites that come up only because another call failed are tried as well; a site that is not reached fails the check.
"""
import argparse
import concurrent.futures
import errno
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ALWAYS = [errno.EINTR, errno.ENOMEM, errno.EMFILE, errno.EPERM, errno.ENOSPC, errno.EINVAL]
ONCE = [errno.EINTR, errno.ENOMEM]
MANY = ((False, ALWAYS), (True, ONCE))
FEW = ((False, [errno.EPERM]), (True, [errno.EINTR]))    # where a failing call means waiting for a core dump in vain
SECONDS = 60
# calls that cannot fail, by the function that makes them
CANNOT_FAIL = {
    "signals_unblock": "undoes what has just succeeded",
    "leave_at_once": "exit_group",
    "_exit": "exit_group",
    "_Exit": "exit_group",
    "rec_thread_start": "gettid",
}
# what the recorder takes from libc that is no system call, or none that can fail; whatever is new must be wrapped or named here
HARMLESS = set("""
    __cxa_finalize __environ environ __errno_location clock_gettime dl_iterate_phdr fflush getauxval geteuid getpid getppid
    memchr memcmp memcpy memset sched_yield sigfillset strchr strcmp strlen strncmp strnlen strrchr strstr strtol strtoul
    stderr stdout vsnprintf
""".split())
# what the driver called: passed on as it is (rec_words.c), and fails as it would have failed
HARMLESS |= set("""
    vfprintf __vfprintf_chk vprintf __vprintf_chk vdprintf __vdprintf_chk fprintf __fprintf_chk printf __printf_chk dprintf __dprintf_chk
    puts fputs fputs_unlocked fwrite fwrite_unlocked fputc fputc_unlocked putc putc_unlocked _IO_putc putchar putchar_unlocked write writev
""".split())
HANG = """
import cudrv, ctypes
cudrv.init()
cudrv.launch(cudrv.kernel("hang"), (2,), (64,), ctypes.c_uint64(0))
cudrv.synchronize()
"""


class Scenario:
    def __init__(self, options, program, errors=MANY, never_ends=False, **env):
        self.options, self.program, self.errors, self.env = options, program, errors, env
        self.never_ends = never_ends    # without cuwhy; then what is expected is what happens when nothing fails


def sh(*argv, **options):
    return subprocess.run(argv, check=True, capture_output=True, text=True, **options).stdout


def prepare(build):
    """A folder with cuwhy, the recorder without inlining, and the preload."""
    place = os.path.join(build, "tests", "inject")
    os.makedirs(place, exist_ok=True)
    cc = os.environ.get("CC", "gcc").split()
    flags = ["-std=gnu11", "-O1", "-g", "-D_GNU_SOURCE", "-fPIC"]
    machine = os.uname().machine
    recorder = sorted(glob.glob(os.path.join(ROOT, "src/recorder/**/*.c"), recursive=True)) + [
        os.path.join(ROOT, "src/recorder/arch_%s.S" % machine)]
    sh(*cc, *flags, '-DCUWHY_VERSION="inject"', "-Iinclude", "-Isrc", "-I.", "-fvisibility=hidden", "-fexceptions",
       "-ftls-model=initial-exec", "-fno-inline", "-fno-optimize-sibling-calls", "-fno-tree-ch", "-shared", "-Wl,-z,now",
       "-Wl,--version-script=src/recorder/arch_%s.map" % machine, *recorder, "-o", os.path.join(place, "libcuwhy-rec.so"), cwd=ROOT)
    sh(*cc, *flags, "-include", "stdbool.h", "-shared", os.path.join(HERE, "inject.c"), "-o", os.path.join(place, "inject.so"), "-ldl")
    sh(*cc, "-std=gnu11", "-O1", "-D_GNU_SOURCE", os.path.join(HERE, "victim.c"), "-o", os.path.join(place, "victim"),
       "-L" + os.path.join(build, "sim"), "-l:libcuda.so.1", "-lpthread")
    for name in ("cuwhy", "cuwhy-probe"):
        shutil.copy(os.path.join(build, name), place)
    for name in ("sim", "lib32"):
        if not os.path.exists(os.path.join(place, name)):
            os.symlink(os.path.join(build, name), os.path.join(place, name))
    return place


class Runner:
    def __init__(self, build):
        self.place = prepare(build)
        self.sim = os.path.join(build, "sim")
        self.recorder = os.path.join(self.place, "libcuwhy-rec.so")
        self.tmp = tempfile.mkdtemp(prefix="cuwhy-inject-")
        self.log = os.path.join(self.tmp, "sites")
        self.runs = 0

    def env(self, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("CUWHY", "INJECT"))}
        env.update(CUWHY_WRITES_MODE="real", LD_PRELOAD=os.path.join(self.place, "inject.so"), CUWHY_DIR=os.path.join(self.tmp, "state"),
                   PYTHONDONTWRITEBYTECODE="1", PYTHONPATH=os.path.join(ROOT, "tests/e2e/site-packages"), **more)
        return env

    def run(self, argv, env):
        self.runs += 1
        try:
            done = subprocess.run(argv, env=env, capture_output=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return "still running after %d s" % SECONDS
        return done.returncode, done.stdout

    def plain(self, scenario):
        return self.run(scenario.program, self.env(LD_LIBRARY_PATH=self.sim, CUWHY_SIM="tiny"))

    def under(self, scenario, **inject):
        command = [os.path.join(self.place, "cuwhy"), "run", "--json", "--gpu", "sim:tiny"] + scenario.options + ["--"]
        return self.run(command + scenario.program, self.env(INJECT_LOG=self.log, **scenario.env, **inject))

    def reached(self):
        with open(self.log, encoding="ascii") as stream:
            return dict(reversed(line.split()) for line in stream)


def call_sites(recorder, names):
    """{offset behind a call: (function that is called, function that calls)}, from the machine code."""
    found, caller, called = {}, None, None
    for line in sh("objdump", "-d", "--no-show-raw-insn", recorder).splitlines():
        head = re.match(r"^[0-9a-f]+ <(.+)>:$", line)
        step = re.match(r"^\s*([0-9a-f]+):\s+(.*)$", line)
        if head:
            caller = head.group(1)
        elif step:
            if called:
                found[step.group(1)] = (called, caller)
            call = re.search(r"\bcall\s.*<(\w+)@plt>", step.group(2)) or re.search(r"\bcall\s.*# .*<(\w+)@", step.group(2))
            called = call.group(1) if call and call.group(1) in names else None
    return found


def wrapped():
    with open(os.path.join(HERE, "inject.c"), encoding="utf-8") as stream:
        text = stream.read()
    return set(re.findall(r"^WRAP\([^,]+, (\w+),", text, re.M)) | set(re.findall(r'fails\("(\w+)"', text))


def imports(recorder):
    listed = sh("nm", "-D", "--undefined-only", recorder).split("\n")
    return {line.split()[-1].split("@")[0] for line in listed if " U " in line}


def scenarios(place, python):
    case = lambda name: os.path.join(ROOT, "tests/e2e/cases", name + ".py")
    victim = os.path.join(place, "victim")
    return [Scenario(["--no-core-dump"], [victim]),
            Scenario(["--no-core-dump"], [victim], INJECT_ODD="1"),
            Scenario(["--no-core-dump"], [victim, "together"], INJECT_SLOW="1"),
            Scenario(["--no-core-dump", "--memory-trace"], [victim, "fail"]),
            Scenario(["--hang-after", "60s"], [victim, "exit"]),
            Scenario([], [python, case("fault_oob")], FEW),
            Scenario(["--hang-after", "1s"], [python, "-c", HANG], FEW, never_ends=True)]


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--build", default="build")
    ap.add_argument("--python", default=sys.executable)
    ap.add_argument("-j", dest="jobs", type=int, default=os.cpu_count())
    args = ap.parse_args()
    runner = Runner(os.path.abspath(args.build))
    every = {s: c for s, c in call_sites(runner.recorder, wrapped()).items() if c[1] not in CANNOT_FAIL}
    wrong = ["inject.c cannot make %s fail" % name for name in sorted(imports(runner.recorder) - wrapped() - HARMLESS)]
    tried = set()
    python = os.path.realpath(sh(args.python, "-c", "import sys; print(sys.executable)").strip())
    try:
        for number, scenario in enumerate(scenarios(runner.place, python)):
            words = sorted(scenario.env) + scenario.options + [os.path.basename(a).split("\n")[0] for a in scenario.program]
            print("# %s" % " ".join(words), flush=True)
            open(runner.log, "a", encoding="ascii").close()
            got = runner.under(scenario)
            expected = got if scenario.never_ends else runner.plain(scenario)
            if got != expected:
                wrong.append("scenario %d, nothing fails: %s, expected %s" % (number, got, expected))
                continue
            for _ in range(3):      # failing calls lead to new sites
                sites = sorted(set(runner.reached()) & set(every) - tried)
                jobs = [(s, e, once) for s in sites for once, errors in scenario.errors for e in errors]
                tried |= set(sites)

                def one(job):
                    site, error, once = job
                    more = {"INJECT_ONCE": "1"} if once else {}
                    return runner.under(scenario, INJECT_SITE=site, INJECT_ERRNO=str(error), **more)

                with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
                    for job, result in zip(jobs, pool.map(one, jobs)):
                        if result != expected:
                            wrong.append("scenario %d, %s at %s, %s: %s, expected %s" % (
                                number, runner.reached()[job[0]], job[0], errno.errorcode[job[1]], result, expected))
        missed = {s: c for s, c in every.items() if s not in tried}
        for site, (called, caller) in sorted(missed.items()):
            line = sh("addr2line", "-e", runner.recorder, hex(int(site, 16) - 1)).strip()
            wrong.append("never made to fail: %s in %s (%s)" % (called, caller, os.path.relpath(line, ROOT)))
        for text in wrong:
            print("not ok - " + text)
        print("inject: %d of %d call sites reached and made to fail, %d runs, %d wrong" % (
            len(tried), len(every), runner.runs, len(wrong)))
    finally:
        shutil.rmtree(runner.tmp, ignore_errors=True)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
