# SPDX-License-Identifier: Apache-2.0
"""What an exception says is evidence, whoever shows it: `cuwhy run` must know what `cuwhy explain` knows from the same traceback."""
import json
import os
import subprocess

from toolbox import HERE, each, same

SURE = ["possible", "likely", "certain"]

# name: (the statements that raise, the cause, that of the text if it is another one; None: it has nothing to do with CUDA, whatever words it has in common with reports)
RAISES = {
    "cpu-allocator": ('raise RuntimeError("[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can\'t allocate memory: you tried to allocate '
                      '4503599627370496 bytes. Error code 12 (Cannot allocate memory)")', "host-memory"),
    "memory-error": ("bytearray(1 << 60)", "host-memory"),
    "no-memory-of-the-system": ("raise OSError(12, os.strerror(12))", "host-memory"),
    "worker-killed": ('raise RuntimeError("DataLoader worker (pid 4242) is killed by signal: Killed. ")', "host-memory"),
    "bad-alloc": ('raise RuntimeError("std::bad_alloc")', "host-memory"),
    "shapes": ('raise RuntimeError("mat1 and mat2 shapes cannot be multiplied (4x5 and 6x7)")', "shape-mismatch"),
    "devices": ('raise RuntimeError("Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!")', "tensor-device-mismatch"),
    "not-compiled": ('raise AssertionError("Torch not compiled with CUDA enabled")', "cpu-only-build"),
    # the text does not say that PyTorch was not even loaded
    "no-kernel-image": ('raise RuntimeError("CUDA error: no kernel image is available for execution on the device")', "extension-arch-missing", "arch-not-in-wheel"),
    "runtime-missing": ('raise ImportError("libcudart.so.11.0: cannot open shared object file: No such file or directory")', "extension-abi-mismatch"),
    "collective-timeout": ('raise RuntimeError("[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, '
                           'NumelOut=1, Timeout(ms)=600000) ran for 600012 milliseconds before timing out.")', "nccl-timeout"),
    "cudnn-status": ('raise RuntimeError("cuDNN error: CUDNN_STATUS_NOT_INITIALIZED")', "oom-masked-as-library-error"),
    "cublas-status": ('raise RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")', "oom-masked-as-library-error"),
    "index": ('raise IndexError("index out of range in self")', "embedding-index-out-of-range"),
    "target": ('raise IndexError("Target 5 is out of bounds.")', "label-out-of-range"),
    "address-in-use": ('raise RuntimeError("The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, '
                       'name: EADDRINUSE, message: address already in use")', "rendezvous-failed"),
    "caused": ('try:\n    raise RuntimeError("DefaultCPUAllocator: can\'t allocate memory: you tried to allocate 4503599627370496 bytes.")\n'
               'except RuntimeError as e:\n    raise ValueError("could not prepare the batch") from e', "host-memory"),
    "in-a-handler": ('try:\n    raise RuntimeError("mat1 and mat2 shapes cannot be multiplied (4x5 and 6x7)")\n'
                     'except RuntimeError:\n    raise ValueError("step failed")', "shape-mismatch"),
    "of-a-child": ('raise RuntimeError("\\n\\n-- Process 0 terminated with the following error:\\nTraceback (most recent call last):\\n  File \\"train.py\\", line 5, '
                   'in work\\n    a @ b\\nRuntimeError: mat1 and mat2 shapes cannot be multiplied (4x5 and 6x7)\\n")', "shape-mismatch"),
    "key": ('{"bias": 1}["weight"]', None),
    "value": ('raise ValueError("unknown option: foo")', None),
    "in-place": ('raise RuntimeError("one of the variables needed for gradient computation has been modified by an inplace operation: '
                 '[torch.cuda.FloatTensor [3]] is at version 1; expected version 0 instead.")', "autograd-inplace-modified"),
    "file": ('open("/no/such/file")', None),
}


def judged(box, body):
    """The verdict of the recording, and that of the traceback alone."""
    run = box.under(box.script("import os\nimport cudrv\ncudrv.init()\n" + body + "\n"), PYTHONPATH=os.path.join(HERE, "site-packages"))
    same(run.status, 1, "status (%s)" % run.err[-300:])
    log = "".join(line + "\n" for line in run.err.splitlines() if not line.startswith("{"))
    assert log.startswith("Traceback"), log
    done = subprocess.run([box.cuwhy, "explain", "--json", "-"], input=log, capture_output=True, text=True, env=box.env(), check=False)
    return run, box.verdict(run), json.loads(done.stdout)


@each(sorted(RAISES))
def rule__a_run_knows_what_its_traceback_says(box, name):
    body, cause, *of_text = RAISES[name]
    run, recorded, pasted = judged(box, body)
    same(recorded["cause"], cause or "none", "cause")
    if not cause:
        return
    same(pasted["cause"], (of_text or [cause])[0], "cause of the text")
    log_is_silent = "the kernel log does not say" in (recorded["because"] or "")    # of the machine that this runs on
    assert log_is_silent or SURE.index(recorded["certainty"]) >= SURE.index(pasted["certainty"]), (recorded["certainty"], pasted["certainty"])
    same(os.path.basename(recorded["where"]["file"]), "program.py", "where")
    assert recorded["process"]["pid"] > 0, recorded["process"]
    again = json.loads(subprocess.run([box.cuwhy, "explain", "--json", run.folder], capture_output=True, text=True, env=box.env(), check=False).stdout)
    same((again["cause"], again["certainty"]), (recorded["cause"], recorded["certainty"]), "when it is explained again")


def rule__a_program_that_ends_well_has_no_failure_whatever_it_caught(box):
    body = "try:\n    %s\nexcept RuntimeError as e:\n    print(e)\n" % RAISES["shapes"][0]
    run = box.under(box.script("import os\nimport cudrv\ncudrv.init()\n" + body), PYTHONPATH=os.path.join(HERE, "site-packages"))
    same((run.status, box.verdict(run)["cause"]), (0, "none"), "status and cause")


KILL = "Memory cgroup out of memory: Killed process 4242 (pt_data_worker) total-vm:8kB"


def rule__the_kernel_log_says_who_killed_the_worker(box):
    run, before, _ = judged(box, RAISES["worker-killed"][0])
    path = os.path.join(run.folder, "run.json")
    for lines, certainty, words in (([KILL], "certain", "Killed process 4242"), ([], "possible", "the kernel log does not say that the kernel killed")):
        with open(path, encoding="utf-8") as stream:
            told = json.load(stream)
        told["kernel_log"] = {"readable": True, "lost": False, "lines": lines}
        with open(path, "w", encoding="utf-8") as stream:
            json.dump(told, stream)
        done = subprocess.run([box.cuwhy, "explain", "--json", run.folder], capture_output=True, text=True, env=box.env(), check=False)
        verdict = json.loads(done.stdout)
        same((verdict["cause"], verdict["certainty"]), ("host-memory", certainty), "with %s" % lines)
        assert words in done.stdout, done.stdout
    same(before["cause"], "host-memory", "cause")
