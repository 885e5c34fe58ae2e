# SPDX-License-Identifier: Apache-2.0
"""`cuwhy doctor` on the simulated driver and on environments made for it; `cuwhy run` where the environment is to blame."""
import json
import os
import re
import stat
import sys

from toolbox import Skip, same

TORCH = "__version__ = '%s'\ndebug = False\ncuda = %s\ngit_version = 'abc'\nhip = None\n"


def doctor(box, *options, sim="h200", nvml="gpu", exit=None, **env):
    run = box.plain([box.cuwhy, "doctor", "--json"] + list(options), LD_LIBRARY_PATH=box.sim, CUWHY_SIM=sim,
                    CUWHY_SIM_NVML=nvml, **env)
    if exit is not None:
        same(run.status, exit, "exit (%s)" % run.err)
    return json.loads(run.out)


def environment(box, version, cuda):
    """A folder that looks like a virtual environment with this PyTorch; nothing in it runs."""
    name = "python%d.%d" % sys.version_info[:2]
    folder = os.path.join(box.scratch, "venv")
    packages = os.path.join(folder, "lib", name, "site-packages")
    info = os.path.join(packages, "torch-%s.dist-info" % version.split("+")[0])
    for path in (os.path.join(folder, "bin"), os.path.join(packages, "torch", "lib"), info):
        os.makedirs(path, exist_ok=True)
    files = {os.path.join(folder, "pyvenv.cfg"): "home = %s\nversion = %d.%d.0\n" % ((os.path.dirname(box.python),) + sys.version_info[:2]),
             os.path.join(packages, "torch", "__init__.py"): "",
             os.path.join(packages, "torch", "version.py"): TORCH % (version, repr(cuda) if cuda else None),
             os.path.join(info, "METADATA"): "Metadata-Version: 2.1\nName: torch\nVersion: %s\n" % version.split("+")[0],
             os.path.join(info, "RECORD"): "torch/__init__.py,,\ntorch/version.py,,\n"}
    for path, text in files.items():
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
    link = os.path.join(folder, "bin", "python")
    if not os.path.exists(link):
        os.symlink(box.python, link)
    return folder


def rule__a_gpu_that_works_is_green(box):
    answer = doctor(box, exit=0)
    same(answer["cause"], "none", "cause")
    same([c["status"] for c in answer["checks"] if c["status"] in ("WARN", "FAIL")], [], "found")
    same((answer["facts"]["gpu.name"], answer["facts"]["gpu.cc"], answer["facts"]["driver.version"]), ("NVIDIA H200", "9.0", "13.0"), "facts")
    same([g["capability"] for g in answer["gpus"]], ["9.0"], "GPUs")


def rule__what_cuinit_returns_is_explained(box):
    for code, cause in ((802, "fabric-manager-not-ready"), (803, "driver-library-mismatch"), (804, "forward-compat-unsupported"),
                        (805, "mps-unreachable"), (304, "driver-fails")):
        answer = doctor(box, sim="h200,fail=cuInit:1:%d" % code, exit=1)
        same(answer["cause"], cause, "cause of %d" % code)
        same(answer["fix"] != [], True, "something to try")


def rule__what_nvml_says_of_a_gpu_is_judged(box):
    for word, cause in (("mode=2", "compute-mode-exclusive"), ("remap=failed", "ecc-hardware-fault"), ("ecc=3", "ecc-hardware-fault"),
                        ("mig,migs=0", "mig-misuse")):
        same(doctor(box, nvml="gpu," + word, exit=1)["cause"], cause, word)
    answer = doctor(box, nvml="gpu,mode=3,proc=1:1G", exit=1)
    same((answer["cause"], answer["certainty"]), ("compute-mode-exclusive", "likely"), "taken")
    same(doctor(box, nvml="gpu,mode=3", exit=0)["cause"], "none", "exclusive, and free")


def rule__a_driver_that_hangs_or_crashes_is_a_finding(box):
    for word in ("hang=nvmlInit_v2", "crash=nvmlInit_v2", "hang=nvmlDeviceGetName"):
        answer = doctor(box, "--timeout", "1", nvml="gpu," + word, exit=1)
        same(answer["cause"], "driver-fails", word)


def rule__a_library_that_is_no_library_is_a_finding(box):
    folder = os.path.join(box.scratch, "lib")
    os.makedirs(folder)
    open(os.path.join(folder, "libcuda.so.1"), "w").close()
    run = box.plain([box.cuwhy, "doctor", "--json"], LD_LIBRARY_PATH=folder + ":" + box.sim, CUWHY_SIM="h200", CUWHY_SIM_NVML="gpu")
    same((run.status, json.loads(run.out)["cause"]), (1, "driver-library-broken"), "a libcuda of 0 bytes")


def rule__the_worst_gpu_is_judged_and_hidden_ones_are_not(box):
    same(doctor(box, sim="h200,devices=2", nvml="gpu,gpu,mode=2", exit=1)["facts"]["gpu.index"], 1, "the second")
    same(doctor(box, sim="h200,devices=2", nvml="gpu,gpu,mode=2", exit=0, CUDA_VISIBLE_DEVICES="0")["cause"], "none", "hidden")


def rule__the_torch_of_an_environment_is_judged(box):
    answer = doctor(box, "--python", environment(box, "2.11.0+cpu", None), exit=1)
    same((answer["cause"], answer["certainty"]), ("cpu-only-build", "certain"), "a CPU build")
    same("pip install" in answer["fix"][0]["command"], True, "what to install")
    folder = environment(box, "2.11.0+cu130", "13.0")
    answer = doctor(box, "--python", folder, sim="a100,driver=12020", nvml="gpu,driver=535.54.03,cuda=12020", exit=1)
    same([c["cause"] for c in answer["checks"] if c["id"] == "runtime"], ["driver-too-old"], "driver")
    same("cu12" in json.dumps(answer["fix"]), True, "a wheel that this driver runs")


def rule__a_bundle_is_private_and_says_the_same(box):
    path = os.path.join(box.scratch, "bundle.json")
    first = doctor(box, "--bundle", path, "--python", environment(box, "2.11.0+cpu", None), USER="xyzzyuser", NCCL_SECRET_TOKEN="plugh")
    same(stat.S_IMODE(os.stat(path).st_mode), 0o600, "mode")
    with open(path, encoding="utf-8") as stream:
        text = stream.read()
    same([w for w in ("xyzzyuser", "plugh") if w in text], [], "names and secrets in it")
    again = box.plain([box.cuwhy, "doctor", "--json", path])
    same((again.status, json.loads(again.out)["cause"]), (1, first["cause"]), "elsewhere")


def rule__a_process_is_judged_by_its_number(box):
    run = box.plain([box.cuwhy, "doctor", "--json", "--pid", str(os.getpid())], LD_LIBRARY_PATH=box.sim, CUWHY_SIM="h200", CUWHY_SIM_NVML="gpu")
    same(run.status in (0, 1), True, run.err)
    gone = box.plain([box.cuwhy, "doctor", "--pid", "4194303"])
    same((gone.status, "4194303" in gone.err), (2, True), gone.err)


def rule__a_machine_without_a_gpu_is_told_in_one_line(box):
    if os.path.exists("/dev/nvidiactl") or os.path.exists("/proc/driver/nvidia") or os.path.exists("/dev/dxg"):
        raise Skip("this machine has a GPU")
    run = box.plain([box.cuwhy, "doctor"])
    same(run.status, 1, "exit")
    same(len(re.findall(r"^  (?:FAIL|WARN) ", run.out, re.M)), 1, run.out)


# ---- cuwhy run ----

def rule__a_program_whose_torch_has_no_cuda_is_told_so(box):
    run = box.under(box.script("def main():\n    raise AssertionError('Torch not compiled with CUDA enabled')\n\n\nmain()\n"), gpu=None)
    verdict = box.verdict(run)
    same((verdict["cause"], verdict["certainty"]), ("cpu-only-build", "certain"), "cause")
    same((verdict["where"]["line"], run.status), (2, 1), "line, exit")


def rule__an_ordinary_exception_wakes_nobody(box):
    run = box.under(box.script("raise ValueError('x')\n"), gpu=None)
    same((box.verdict(run)["cause"], box.parts(run)), ("none", []), "cause, recordings")


def rule__a_library_that_is_missing_is_told_though_nothing_else_is_there(box):
    text = "raise ImportError('libcudnn.so.9: cannot open shared object file: No such file or directory')\n"
    same(box.verdict(box.under(box.script(text), gpu=None))["cause"], "wheel-packaging-defect", "cause")
    text = "raise ImportError('libcurl.so.4: cannot open shared object file: No such file or directory')\n"
    same(box.verdict(box.under(box.script(text), gpu=None))["cause"], "none", "another library")


def rule__a_driver_that_is_missing_is_the_doctors(box):
    if os.path.exists("/dev/nvidiactl") or os.path.exists("/proc/driver/nvidia") or os.path.exists("/dev/dxg"):
        raise Skip("this machine has a GPU")
    text = "raise RuntimeError('Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU')\n"
    verdict = box.verdict(box.under(box.script(text), gpu=None))
    same(verdict["cause"] in ("no-gpu", "container-without-gpu", "driver-not-installed"), True, verdict["cause"])
    same([e for e in verdict["evidence"] if e["source"] == "doctor"] != [], True, "the doctor's evidence")


def rule__explain_says_again_what_the_doctor_found(box):
    """Re-analyzed elsewhere or later, the original machine is no longer there to examine."""
    if os.path.exists("/dev/nvidiactl") or os.path.exists("/proc/driver/nvidia") or os.path.exists("/dev/dxg"):
        raise Skip("this machine has a GPU")
    text = "raise RuntimeError('Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU')\n"
    run = box.under(box.script(text), gpu=None)
    verdict, part = box.verdict(run), box.parts(run)[0]["path"]
    for place in (run.folder, part):
        again = json.loads(box.plain([box.cuwhy, "explain", "--json", place]).out)
        for key in ("cause", "certainty", "title", "because", "why", "fix", "evidence", "candidates", "unchecked", "checks", "where"):
            same(again[key], verdict[key], key)
    os.unlink(part[:-len(".cwr")] + ".json")
    same(json.loads(box.plain([box.cuwhy, "explain", "--json", run.folder]).out)["checks"], verdict["checks"], "by verdict.json alone")


def rule__the_page_shows_what_the_doctor_found(box):
    """The page's verdict is the one of the run: re-analyzed on another machine, it might differ."""
    if os.path.exists("/dev/nvidiactl") or os.path.exists("/proc/driver/nvidia") or os.path.exists("/dev/dxg"):
        raise Skip("this machine has a GPU")
    text = "raise RuntimeError('Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU')\n"
    run = box.under(box.script(text), gpu=None)
    verdict, path = box.verdict(run), os.path.join(box.scratch, "page.html")
    same([c["status"] for c in verdict["checks"] if c["cause"] == verdict["cause"]], ["FAIL"], "checks")
    made = box.plain([box.cuwhy, "report", "-o", path, run.folder])
    if "built without the report page" in made.err:
        raise Skip("built without the page")
    same(made.status, 0, made.err)
    with open(path, encoding="utf-8") as stream:
        page = json.loads(re.search(r'<script type="application/json"[^>]*>(.*?)</script>', stream.read(), re.S).group(1))
    same((page["verdict"]["cause"], page["verdict"]["checks"]), (verdict["cause"], verdict["checks"]), "the page")
