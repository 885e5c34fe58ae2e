#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares every fact of `cuwhy doctor` on a machine with a GPU with what nvidia-smi, PyTorch and the kernel say.

    tests/gpu/doctor.py [--build build] [--python PYTHON] [--cuwhy COMMAND] [--smi COMMAND]

Without nvidia-smi or PyTorch, what needs them is skipped, with a message. The last two options are for trying the test itself.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

RUNS, LIMIT_S = 5, 3.0
MODES = {"Default": 0, "Exclusive_Thread": 1, "Prohibited": 2, "Exclusive_Process": 3}
FABRIC = {"Not Started": 1, "In Progress": 2, "Completed": 3}
MUST_LOAD = ("libcudart", "libcublas", "libcudnn", "libnccl")
WATCHED = MUST_LOAD + ("libcublasLt", "libcufft", "libcurand", "libcusparse", "libcusparseLt", "libcusolver", "libnvrtc", "libcupti",
                       "libnvJitLink", "libcufile", "libnvshmem_host", "libtorch_cuda", "libtorch_cpu", "libtorch_python", "libtorch",
                       "libc10", "libc10_cuda", "libcuda")

# What PyTorch itself says; prints one line of JSON, and with an argument waits for the end of its input.
ASK_TORCH = r"""
import importlib.metadata as md, json, os, sys
import torch
a = {"version": torch.__version__, "cuda": torch.version.cuda, "python": list(sys.version_info[:3]), "prefix": sys.prefix,
     "exe": os.path.realpath(sys.executable), "pid": os.getpid(), "file": torch.__file__, "available": torch.cuda.is_available(),
     "archs": torch.cuda.get_arch_list() if torch.cuda.is_available() else torch._C._cuda_getArchFlags().split(), "devices": []}
a["packages"] = [[d.metadata["Name"], d.version] for d in md.distributions() if d.metadata["Name"]]
a["abi"] = int(torch.compiled_with_cxx11_abi())
try:
    a["cudnn"] = torch.backends.cudnn.version()
except Exception:
    a["cudnn"] = None
if a["available"]:
    torch.cuda.init()
    for i in range(torch.cuda.device_count()):
        p = torch.cuda.get_device_properties(i)
        a["devices"].append({"name": p.name, "cc": [p.major, p.minor], "total": p.total_memory, "uuid": str(getattr(p, "uuid", "")),
                             "bus": getattr(p, "pci_bus_id", None)})
    x = torch.randn(64, 64, device="cuda")
    y = torch.nn.functional.conv2d(torch.randn(1, 3, 16, 16, device="cuda"), torch.randn(4, 3, 3, 3, device="cuda"))
    (x @ x).sum().item(), y.sum().item()
    a["peers"] = [[torch.cuda.can_device_access_peer(i, k) for k in range(torch.cuda.device_count()) if k != i]
                  for i in range(torch.cuda.device_count())]
    try:
        a["nccl"] = list(torch.cuda.nccl.version())
    except Exception:
        a["nccl"] = None
a["maps"] = sorted({l.split(None, 5)[5].rstrip("\n") for l in open("/proc/self/maps") if ".so" in l})
print(json.dumps(a), flush=True)
if len(sys.argv) > 1:
    sys.stdin.read()
"""


class Table:
    """Rows of what both know; counts them."""
    def __init__(self):
        self.rows, self.passed, self.failed, self.skipped = [], 0, 0, 0

    def same(self, what, ours, theirs, fits=None):
        fine = fits(ours, theirs) if fits else ours == theirs
        self.passed += fine
        self.failed += not fine
        self.rows.append(("ok" if fine else "NOT OK", what, ours, theirs))

    def skip(self, what, why):
        self.skipped += 1
        self.rows.append(("skip", what, "-", why))

    def show(self):
        for status, what, ours, theirs in self.rows:
            wide = 400 if status == "NOT OK" else 70
            print("%-6s  %-34s  %-40s  %s" % (status, what, str(ours)[:wide], str(theirs)[:wide]))


# --- what the others say ---------------------------------------------------------------------------

def text_of(node, path):
    """None where nvidia-smi has no answer."""
    found = node.find(path)
    text = found.text.strip() if found is not None and found.text else None
    return None if text in (None, "", "N/A", "[N/A]", "Requested functionality has been deprecated") else text


def mib(text):
    m = re.match(r"(\d+) MiB", text or "")
    return int(m.group(1)) if m else None


def enabled(text):
    return {"Enabled": 1, "Disabled": 0, "Yes": 1, "No": 0}.get(text)


def ask_smi(command):
    try:
        done = subprocess.run(command + ["-q", "-x"], capture_output=True, text=True, timeout=60)
        return xml.fromstring(done.stdout)
    except (OSError, subprocess.TimeoutExpired, xml.ParseError) as e:
        print("nvidia-smi: %s" % e)
        return None


def ask_torch(python):
    try:
        done = subprocess.run([python, "-c", ASK_TORCH], capture_output=True, text=True, timeout=300)
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError) as e:
        print("PyTorch: %s" % e)
        return None


def ask_collect_env(python):
    """Its lines "Key: value"."""
    try:
        done = subprocess.run([python, "-m", "torch.utils.collect_env"], capture_output=True, text=True, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as e:
        print("collect_env: %s" % e)
        return {}
    return dict(m.groups() for m in re.finditer(r"^([A-Z][\w ()/]+): (.+)$", done.stdout, re.M))


# --- what the doctor says --------------------------------------------------------------------------

class Doctor:
    def __init__(self, command, scratch):
        self.command, self.scratch = command, scratch

    def ask(self, *words):
        """(exit status, answer, seconds)"""
        began = time.monotonic()
        done = subprocess.run(self.command + ["doctor", "--json"] + list(words), capture_output=True, text=True, timeout=120)
        took = time.monotonic() - began
        try:
            return done.returncode, json.loads(done.stdout), took
        except ValueError:
            sys.exit("cuwhy doctor %s: status %d, no JSON\n%s" % (" ".join(words), done.returncode, done.stderr))

    def bundle(self, *words):
        path = os.path.join(self.scratch, "bundle.json")
        status, answer, took = self.ask("--bundle", path, *words)
        with open(path, encoding="utf-8") as stream:
            return status, answer, json.load(stream), took, path


# --- comparing -------------------------------------------------------------------------------------

def place(text):
    return tuple(int(n, 16) for n in re.split(r"[:.]", text)) if text else None


def pids_of(smi):
    return sorted({int(p.findtext("pid")) for p in smi.iter("process_info") if (p.findtext("pid") or "").isdigit()})


def compare_gpu(t, ours, smi, host):
    """One GPU of the bundle's NVML part with its part of nvidia-smi's answer."""
    def number(key, theirs, what=None):
        if theirs is None:
            t.skip("GPU " + (what or key), "nvidia-smi does not say")
        else:
            t.same("GPU " + (what or key), ours.get(key), theirs)

    t.same("GPU name", ours.get("name"), text_of(smi, "product_name"))
    t.same("GPU uuid", ours.get("uuid"), text_of(smi, "uuid"))
    t.same("GPU PCI place", place(ours.get("pci")), place(text_of(smi, "pci/pci_bus_id") or smi.get("id")))
    device = text_of(smi, "pci/pci_device_id")
    card = next((g for g in host.get("gpu", []) if place(g.get("address")) == place(ours.get("pci"))), None)
    if device and card and card.get("device"):
        t.same("GPU PCI device", "%04X10DE" % card["device"], device.upper().replace("0X", ""))
    else:
        t.skip("GPU PCI device", "not seen on the bus")
    close = lambda a, b: a is not None and b is not None and abs(a - b) <= 1
    for key in ("total", "reserved"):
        theirs = mib(text_of(smi, "fb_memory_usage/" + key))
        if theirs is not None:
            t.same("GPU memory %s (MiB)" % key, ours[key] >> 20 if key in ours else None, theirs, close)
    theirs = mib(text_of(smi, "fb_memory_usage/used"))
    if theirs is not None:
        t.same("GPU memory used (MiB)", ours.get("used", 0) >> 20, theirs, lambda a, b: abs(a - b) <= 1024)
    number("compute_mode", MODES.get(text_of(smi, "compute_mode")))
    number("mig", enabled(text_of(smi, "mig_mode/current_mig")))
    number("mig_pending", enabled(text_of(smi, "mig_mode/pending_mig")))
    number("ecc", enabled(text_of(smi, "ecc_mode/current_ecc")))
    number("ecc_pending", enabled(text_of(smi, "ecc_mode/pending_ecc")))
    for key, folder in (("ecc_volatile", "volatile"), ("ecc_aggregate", "aggregate")):
        # NVML's total is memory only; newer tools count the caches separately
        parts = {n.tag: text_of(smi, "ecc_errors/%s/%s" % (folder, n.tag)) for n in smi.findall("ecc_errors/%s/*" % folder)}
        counts = [int(v) for k, v in parts.items() if v and v.isdigit() and "uncorrectable" in k]
        if counts and key in ours:	# some drivers no longer add them up
            t.same("GPU " + key, ours[key], counts, lambda a, b: a == sum(b) or a in b)
        else:
            t.skip("GPU " + key, "one of the two does not say")
    rows = text_of(smi, "remapped_rows/remapped_row_unc")
    number("remapped", int(rows) if rows else None, "remapped rows")
    number("remap_pending", enabled(text_of(smi, "remapped_rows/remapped_row_pending")))
    number("remap_failed", enabled(text_of(smi, "remapped_rows/remapped_row_failure")))
    number("persistence", enabled(text_of(smi, "persistence_mode")))
    number("fabric_state", FABRIC.get(text_of(smi, "fabric/state")))
    t.same("GPU processes", sorted({p["pid"] for p in ours.get("processes", [])}), pids_of(smi))
    for p in smi.findall("processes/process_info"):
        used = mib(text_of(p, "used_memory"))
        mine = next((x for x in ours.get("processes", []) if str(x["pid"]) == p.findtext("pid")), {})
        if used is not None and "bytes" in mine:
            t.same("memory of process %s (MiB)" % p.findtext("pid"), mine["bytes"] >> 20, used, lambda a, b: abs(a - b) <= 64)


def compare_smi(t, answer, bundle, smi):
    nvml = bundle.get("nvml", {})
    driver = text_of(smi, "driver_version")
    t.same("driver (NVML)", nvml.get("driver"), driver)
    t.same("driver (verdict)", answer["facts"].get("driver.release"), driver)
    kernel = bundle["host"].get("kernel", {}).get("version")
    if kernel:
        t.same("driver (kernel module)", kernel, driver)
    else:
        t.skip("driver (kernel module)", "/proc/driver/nvidia is not there")
    version = text_of(smi, "cuda_version")
    t.same("CUDA version", answer["facts"].get("driver.version"), version)
    gpus = smi.findall("gpu")
    t.same("number of GPUs", len(nvml.get("gpus", [])), len(gpus))
    for g in gpus:
        mine = next((x for x in nvml.get("gpus", []) if x.get("uuid") == text_of(g, "uuid")), None)
        if mine:
            compare_gpu(t, mine, g, bundle["host"])
        else:
            t.same("a GPU that nvidia-smi shows", None, text_of(g, "uuid"))


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def compare_packages(t, env, torch):
    mine = {canonical(p["name"]): p.get("version") for p in env.get("packages", []) if not p.get("hidden")}
    theirs = {}
    for name, version in torch["packages"]:
        theirs.setdefault(canonical(name), version)	# the first on the path is the one that is imported
    for name in sorted(mine):
        t.same("package " + name, mine[name], theirs.get(name))
    wanted = [n for n in theirs if n.startswith("nvidia-") or n in ("torch", "torchvision", "torchaudio", "triton")]
    t.same("nvidia-* and torch* that are seen", sorted(n for n in wanted if n in mine), sorted(wanted))


def compare_torch(t, answer, env, code, torch):
    built = env.get("torch", {})
    t.same("torch version", built.get("version"), torch["version"])
    t.same("torch CUDA", built.get("cuda"), torch["cuda"])
    t.same("torch folder", os.path.realpath(built.get("dir", "")), os.path.realpath(os.path.dirname(torch["file"])))
    t.same("C++ strings", built.get("cxx11_abi"), torch["abi"])
    t.same("Python", [env.get("major"), env.get("minor")], torch["python"][:2])
    if env.get("micro", -1) >= 0:
        t.same("Python (third number)", env["micro"], torch["python"][2])
    t.same("environment", os.path.realpath(env.get("prefix", "")), os.path.realpath(torch["prefix"]))
    if torch["cudnn"]:
        n = torch["cudnn"]	# 91002 is 9.10.2; 8902 is 8.9.2
        version = (n // 10000, n // 100 % 100, n % 100) if n >= 90000 else (n // 1000, n // 100 % 10, n % 100)
        mine = answer["facts"].get("cudnn.version")
        t.same("cuDNN", tuple(int(x) for x in mine.split(".")[:3]) if mine else None, version)
    compare_archs(t, answer, code, torch)
    compare_packages(t, env, torch)


def compare_archs(t, answer, code, torch):
    t.same("architectures (general)", answer["facts"].get("torch.archs", "").split(), torch["archs"])
    own = next((c for c in code if c.get("torch")), {})
    sets = own.get("sets") or [{"count": 1, "targets": own.get("archs", "")}]
    found, total = {}, sum(s["count"] for s in sets)
    for s in sets:
        for target in s["targets"].split():
            name = target.split("@")[0]
            found[name] = found.get(name, 0) + s["count"]
    t.same("get_arch_list() is contained", sorted(a for a in torch["archs"] if a not in found), [])
    extra = {a: n for a, n in found.items() if a not in torch["archs"]}
    t.same("extras are of a few kernels (of %d)" % total, extra, "a or f targets, or in fewer than 1 of 10",
           lambda a, b: all(re.search(r"[af]$", k) or n * 10 < total for k, n in a.items()))


def compare_devices(t, answer, bundle, torch):
    cuda = bundle.get("cuda", {})
    t.same("CUDA devices", len(cuda.get("devices", [])), len(torch["devices"]))
    for i, (mine, theirs) in enumerate(zip(cuda.get("devices", []), torch["devices"])):
        t.same("device %d name" % i, mine.get("name"), theirs["name"])
        t.same("device %d capability" % i, [mine.get("cc_major"), mine.get("cc_minor")], theirs["cc"])
        t.same("device %d memory" % i, mine.get("total"), theirs["total"])
        if theirs["uuid"]:
            t.same("device %d uuid" % i, mine.get("uuid", "").replace("GPU-", ""), theirs["uuid"].replace("GPU-", ""))
        if theirs["bus"] is not None and mine.get("pci"):
            t.same("device %d PCI bus" % i, place(mine["pci"])[1], theirs["bus"])
        if mine.get("peers_known") and torch.get("peers"):
            bits = [bool(mine.get("peers", 0) >> k & 1) for k in range(len(torch["devices"])) if k != i]
            t.same("device %d peers" % i, bits, torch["peers"][i])


def stem(path):
    return re.split(r"\.so\b", os.path.basename(path))[0]


def compare_loaded(t, env, bundle, torch):
    """The predicted libraries, compared with what a process has mapped after it used the GPU."""
    predicted = {stem(f["soname"]): f for f in env.get("loader", {}).get("files", []) if f.get("path")}
    mapped = {}
    for path in torch["maps"]:
        mapped.setdefault(stem(path), set()).add(os.path.realpath(path))
    for name in MUST_LOAD:
        if torch["available"]:
            t.same("%s is predicted and loaded" % name, (name in predicted, name in mapped), (True, True))
    for name in WATCHED:
        if name in predicted and name in mapped and name != "libcuda":
            mine = predicted[name].get("real") or predicted[name]["path"]
            t.same("loaded " + name, os.path.realpath(mine), sorted(mapped[name]), lambda a, b: b == [a])
        elif name in mapped and name != "libcuda":
            t.same("loaded " + name, "not predicted", sorted(mapped[name]), lambda a, b: name not in MUST_LOAD)
    driver = bundle.get("python", {}).get("libcuda", {})
    if "libcuda" in mapped:
        t.same("loaded libcuda", os.path.realpath(driver.get("real") or driver.get("path") or "?"), sorted(mapped["libcuda"]), lambda a, b: b == [a])


def compare_collect_env(t, answer, env, lines):
    pairs = (("PyTorch version", env.get("torch", {}).get("version")), ("CUDA used to build PyTorch", env.get("torch", {}).get("cuda")),
             ("Nvidia driver version", answer["facts"].get("driver.release")))
    for key, mine in pairs:
        if lines.get(key) and not re.match(r"Could not|N/A|No CUDA|Probably", lines[key]):
            t.same("collect_env: " + key, mine, lines[key])
        else:
            t.skip("collect_env: " + key, lines.get(key, "it does not say"))
    if "Python version" in lines:
        t.same("collect_env: Python version", "%s.%s" % (env.get("major"), env.get("minor")), lines["Python version"],
               lambda a, b: b.startswith(a + ".") or b.startswith(a + " "))


def compare_process(t, doctor, python, smi_command):
    """--pid of a program that has used the GPU."""
    child = subprocess.Popen([python, "-c", ASK_TORCH, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        told = json.loads(child.stdout.readline() or "{}")
        if not told:
            t.same("a program to look at", None, "runs")
            return
        status, answer, bundle, took, _ = doctor.bundle("--pid", str(child.pid))
        process = bundle.get("process", {})
        program = os.path.realpath("/proc/%d/exe" % child.pid)
        mine = sorted({l["path"] for l in process.get("libraries", [])} - {program})
        with open("/proc/%d/maps" % child.pid) as f:
            maps = sorted({l.split(None, 5)[5].rstrip("\n") for l in f if re.search(r"\.so(\.[\d.]+)?$", l.rstrip("\n"))})
        t.same("--pid: libraries", [p for p in mine if p not in maps], [], lambda a, b: a == b and bool(mine))
        t.same("--pid: none is left out", [p for p in maps if p not in mine], [])
        t.same("--pid: program", os.path.realpath(process.get("exe", "?")), program)
        env = (bundle.get("python", {}).get("environments") or [{}])[0]
        t.same("--pid: torch", env.get("torch", {}).get("version"), told["version"])
        if told["available"]:
            t.same("--pid: all is well", (status, answer["cause"]), (0, "none"))
            listed = sorted({p["pid"] for g in bundle.get("nvml", {}).get("gpus", []) for p in g.get("processes", [])})
            smi = ask_smi(smi_command)
            t.same("--pid: processes on the GPU", listed, pids_of(smi) if smi is not None else None)
    finally:
        child.stdin.close()
        child.wait(60)


def compare_green(t, doctor, python):
    times, last = [], None
    for _ in range(RUNS):
        status, answer, took = doctor.ask("--python", python)
        times.append(took)
        last = status, answer
    status, answer = last
    t.same("exit, cause", (status, answer["cause"]), (0, "none"))
    t.same("checks that are not OK", [(c["id"], c["status"], c["text"]) for c in answer["checks"] if c["status"] != "OK"], [])
    shown = "%s s (median %.2f)" % (" ".join("%.2f" % x for x in times), statistics.median(times))
    t.same("%d runs, each" % RUNS, shown, "under %.0f s" % LIMIT_S, lambda a, b: max(times) < LIMIT_S)
    for c in answer["checks"]:
        print("  %-5s %-20s %s" % (c["status"], c["label"], c["text"]))


def compare_again(t, doctor, path, status, answer):
    again = doctor.ask(path)
    t.same("the bundle says the same", (again[0], again[1]["cause"], [(c["id"], c["status"]) for c in again[1]["checks"]]),
           (status, answer["cause"], [(c["id"], c["status"]) for c in answer["checks"]]))


def main():
    parser = argparse.ArgumentParser(description="the doctor on a real GPU")
    parser.add_argument("--build", default="build")
    parser.add_argument("--python", default=os.environ.get("PYTHON", sys.executable))
    parser.add_argument("--cuwhy", help="another command than build/cuwhy")
    parser.add_argument("--smi", default="nvidia-smi")
    args = parser.parse_args()
    python = shutil.which(args.python) or args.python
    smi = ask_smi(args.smi.split()) if shutil.which(args.smi.split()[0]) else None
    if smi is None:
        print("doctor: skipped: there is no nvidia-smi that answers")
        return 0
    t = Table()
    with tempfile.TemporaryDirectory(prefix="cuwhy-doctor-") as scratch:
        doctor = Doctor(args.cuwhy.split() if args.cuwhy else [os.path.abspath(os.path.join(args.build, "cuwhy"))], scratch)
        compare_green(t, doctor, python)
        status, answer, bundle, _, path = doctor.bundle("--python", python)
        compare_smi(t, answer, bundle, ask_smi(args.smi.split()) or smi)
        compare_again(t, doctor, path, status, answer)
        torch = ask_torch(python)
        env = (bundle.get("python", {}).get("environments") or [{}])[0]
        if torch:
            compare_torch(t, answer, env, bundle.get("code", []), torch)
            compare_loaded(t, env, bundle, torch)
            compare_collect_env(t, answer, env, ask_collect_env(python))
            if torch["available"]:
                compare_devices(t, answer, bundle, torch)
            else:
                t.skip("CUDA devices", "torch.cuda.is_available() is False")
            compare_process(t, doctor, python, args.smi.split())
        else:
            t.skip("PyTorch", "not installed for %s" % python)
    print()
    t.show()
    print("\ndoctor: %d passed, %d failed, %d skipped" % (t.passed, t.failed, t.skipped))
    return t.failed != 0


if __name__ == "__main__":
    sys.exit(main())
