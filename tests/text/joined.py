# SPDX-License-Identifier: Apache-2.0
"""A failure together with what tools print about the machine: joined, never contradicted. The answer to a traceback stays, or becomes one that
rests on the machine; every version, GPU and size that a sentence names is one of the texts."""
import json
import os
import re
import subprocess
import tempfile

import outputs

HEAD = "Traceback (most recent call last):\n  File \"train.py\", line 31, in <module>\n    loss = step(model, batch)\n"
LAUNCH = "\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\n" \
         "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"

# name: (text, causes that may lead instead because of what the machine's outputs say)
TRACEBACKS = {
    "oom": (HEAD + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 14.58 GiB of which 1.02 GiB is free. "
            "Process 4242 has 13.55 GiB memory in use. Of the allocated memory 13.01 GiB is allocated by PyTorch, and 401.00 MiB is reserved by PyTorch "
            "but unallocated.\n", ()),
    "oom-too-large": (HEAD + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 900.00 GiB. GPU 0 has a total capacity of 23.64 GiB of which "
                      "20.11 GiB is free. Of the allocated memory 3.01 GiB is allocated by PyTorch, and 40.00 MiB is reserved by PyTorch but unallocated.\n", ()),
    "assert": ("/pytorch/aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [5,0,0] Assertion "
               "`t >= 0 && t < n_classes` failed.\n" + HEAD + "RuntimeError: CUDA error: device-side assert triggered" + LAUNCH, ()),
    "illegal": (HEAD + "RuntimeError: CUDA error: an illegal memory access was encountered" + LAUNCH, ()),
    "no-image": (HEAD + "RuntimeError: CUDA error: no kernel image is available for execution on the device" + LAUNCH,
                 ("arch-not-in-wheel", "gpu-too-old", "extension-arch-missing", "library-predates-gpu")),
    "ordinal": (HEAD + "RuntimeError: CUDA error: invalid device ordinal" + LAUNCH, ()),
    "devices": (HEAD + "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!\n", ()),
    "shapes": (HEAD + "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x768 and 512x10)\n", ()),
    "dtype": (HEAD + "RuntimeError: mat1 and mat2 must have the same dtype, but got Half and Float\n", ()),
    "not-compiled": (HEAD + "AssertionError: Torch not compiled with CUDA enabled\n", ()),
    "fork": (HEAD + "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method\n", ()),
    "nccl": ("[rank2]:[E602 10:12:01.120001234 ProcessGroupNCCL.cpp:629] [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=812, "
             "OpType=ALLREDUCE, NumelIn=25557032, NumelOut=25557032, Timeout(ms)=600000) ran for 600004 milliseconds before timing out.\n", ()),
    "cublas": (HEAD + "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\n", ()),
    "shm": (HEAD + "RuntimeError: DataLoader worker (pid 1203) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. "
            "Please try to raise your shared memory limit.\n", ()),
}
# what only a machine without CUDA in its PyTorch may be told
AGAINST_CUDA = re.compile(r"without CUDA|no CUDA support|install a CUDA build|built without", re.I)


def explain(cuwhy, words, text=None):
    done = subprocess.run([cuwhy, "explain", "--json"] + words, input=text, capture_output=True, text=True, errors="replace")
    return json.loads(done.stdout), done.returncode


def sentences(answer):
    said = [answer["title"] or "", answer.get("because") or ""] + answer["why"]
    for fix in answer["fix"]:
        said += [fix["text"], fix.get("command") or ""]
    return said


def contradictions(answer, m, names, traceback):
    """Sentences against a fact of the texts that were given."""
    found = []
    driver = {"nvidia-smi.txt", "nvidia-smi-q.txt", "collect_env.txt", "dmesg.txt"} & set(names)
    versions = {m.cuda, m.driver_cuda, m.nvcc}
    for text in sentences(answer):
        if "collect_env.txt" in names and AGAINST_CUDA.search(text) and "not the %s" % m.torch not in text:
            found.append("%s has CUDA %s: %s" % (m.torch, m.cuda, text))
        for said in re.findall(r"\b(\d{3}\.\d+(?:\.\d+)?)\b(?! (?:[GM]iB|or newer))", text):
            if driver and said != m.driver and re.search("driver", text):
                found.append("the driver is %s: %s" % (m.driver, text))
        for said in re.findall(r"PyTorch (?:is )?(\d+\.\d+\.\d+)", text):
            if said != m.torch:
                found.append("PyTorch is %s: %s" % (m.torch, text))
        for said in re.findall(r"CUDA (\d\d\.\d+)\b", text):
            if {"nvidia-smi.txt", "collect_env.txt"} & set(names) and said not in versions and "or older" not in text:
                found.append("CUDA is one of %s: %s" % (sorted(versions), text))
        for said in re.findall(r"(NVIDIA [A-Z]\w+(?: \w+){0,3}|Tesla \w+)", text):
            if {"nvidia-smi.txt", "collect_env.txt", "nvidia-smi-q.txt"} & set(names) and said.startswith(("NVIDIA A", "NVIDIA H", "NVIDIA G", "Tesla")) and \
                    not m.gpu.startswith(said[:10]):
                found.append("the GPU is %s: %s" % (m.gpu, text))
    counted = {"nvidia-smi.txt", "nvidia-smi-q.txt", "collect_env.txt"} & set(names)
    if traceback == "ordinal" and counted and not any(re.search(r"lists (one|%d) GPU" % m.gpus, text) for text in sentences(answer)):
        found.append("the machine has %d GPUs, which the answer does not use" % m.gpus)
    return found


def memory_of(answer):
    return {key: value for key, value in (answer.get("memory") or {}).items() if key in ("request", "free", "total")}


def check_alone(cuwhy):
    wrong = []
    for seed in range(6):
        m = outputs.Machine(seed)
        for name, make in outputs.ALL.items():
            text = make(m)
            answer, status = explain(cuwhy, ["-"], text)
            if answer["cause"] != "none" or status:
                wrong.append("%s of a healthy machine (%d): %s, %s" % (name, seed, answer["cause"], answer["title"]))
        everything = "".join(make(m) for make in outputs.ALL.values())
        answer, status = explain(cuwhy, ["-"], everything)
        if answer["cause"] != "none":
            wrong.append("all outputs of a healthy machine (%d): %s, %s" % (seed, answer["cause"], answer["title"]))
    return wrong


def forms(folder, log, parts):
    """As files in both orders, as one pasted text in both orders, on standard input."""
    paths = []
    for name, text in [("train.log", log)] + parts:
        paths.append(os.path.join(folder, name))
        with open(paths[-1], "w", encoding="utf-8") as f:
            f.write(text)
    tools = "".join(text for _, text in parts)
    return [("files", paths, None), ("files, the log last", paths[1:] + paths[:1], None), ("pasted", ["-"], log + "\n" + tools),
            ("pasted, the log last", ["-"], tools + "\n" + log)]


def check_pair(cuwhy, folder, name, tools, seed):
    log, better = TRACEBACKS[name]
    m = outputs.Machine(seed)
    alone, _ = explain(cuwhy, ["-"], log)
    wrong = []
    found = forms(folder, log, [(tool, outputs.ALL[tool](m)) for tool in tools])
    # one tool: as files and pasted, in an order that the seed chooses
    for form, words, text in found if len(tools) > 1 else found[seed % 2::2]:
        answer, _ = explain(cuwhy, words, text)
        where = "%s with %s, %s (machine %d)" % (name, "+".join(tools), form, seed)
        if answer["cause"] != alone["cause"] and answer["cause"] not in better:
            wrong.append("%s: %s instead of %s" % (where, answer["cause"], alone["cause"]))
        if memory_of(answer) != memory_of(alone):
            wrong.append("%s: memory is %s instead of %s" % (where, memory_of(answer), memory_of(alone)))
        wrong += ["%s: %s" % (where, one) for one in contradictions(answer, m, tools, name)]
    return wrong


# (what, text, causes that are right)
def sick(m):
    xid = outputs.dmesg(m) + "[ 8123.120001] NVRM: Xid (PCI:0000:07:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
    ecc = outputs.dmesg(m) + "[ 8123.120001] NVRM: Xid (PCI:0000:07:00): 48, pid=4242, name=python, An uncorrectable double bit error (DBE) has been detected\n"
    mismatch = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.86\n"
    return [("a GPU that is lost, in dmesg", xid, ("gpu-lost", "host-hardware-instability")), ("a memory error, in dmesg", ecc, ("ecc-hardware-fault",)),
            ("a driver that was upgraded", mismatch, ("driver-library-mismatch",)),
            ("collect_env without a driver", outputs.collect_env(m, False, "Could not collect", 0),
             ("container-without-gpu", "no-gpu", "driver-not-installed", "driver-not-loaded")),
            ("collect_env, CUDA not available", outputs.collect_env(m, False), ("driver-fails", "uvm-broken-after-suspend"))]


def check_sick(cuwhy):
    wrong = []
    for seed in range(4):
        m = outputs.Machine(seed)
        for what, text, right in sick(m):
            answer, _ = explain(cuwhy, ["-"], text)
            if answer["cause"] not in right:
                wrong.append("%s: %s (%s)" % (what, answer["cause"], answer["title"]))
            if "collect_env" in what:
                wrong += ["%s: %s" % (what, x) for x in contradictions(answer, m, ("collect_env.txt",), "")]
                wrong += ["%s: %s" % (what, fix["command"]) for fix in answer["fix"] if re.search(r"pip (un)?install", fix.get("command") or "")
                          and "older" not in fix["text"]]
    return wrong


def check(cuwhy):
    """Complaints."""
    with tempfile.TemporaryDirectory() as folder:
        wrong = check_alone(cuwhy) + check_sick(cuwhy)
        tools = list(outputs.ALL)
        for i, name in enumerate(TRACEBACKS):
            for k, tool in enumerate(tools):
                wrong += check_pair(cuwhy, folder, name, [tool], i * len(tools) + k)
            wrong += check_pair(cuwhy, folder, name, tools, 1000 + i)
    return wrong
