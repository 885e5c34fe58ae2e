# SPDX-License-Identifier: Apache-2.0
"""Several inputs of `cuwhy explain`: those about one failure become one case, the others are analyzed separately, and
the answer says which and why. A planted mismatch of every pair of kinds."""
import json
import os
import re
import shutil
import subprocess
import sys

from toolbox import same

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "snap"))
import make_snapshot  # noqa: E402

REAL = os.path.join(HERE, "..", "dump", "real")
GIB = 1 << 30


def explain(box, *paths):
    done = subprocess.run([box.cuwhy, "explain", "--json", *paths], capture_output=True, text=True, env=box.env(), check=False)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def joins(verdict):
    return [e["text"] for e in verdict["evidence"] if e["source"] == "input"]


def joined(verdict, what):
    found = joins(verdict)
    assert len(found) == 1 and found[0].startswith("joined with " + what), found
    same([o["cause"] for o in verdict["others"]], [], "other verdicts")


def apart(verdict, why):
    found = joins(verdict)
    assert len(found) == 1 and "was analyzed separately: " in found[0] and why in found[0], found


def case_run(box, name, folder):
    """A program of cases/ under cuwhy; the recording is moved to `folder`."""
    run = box.under([box.python, os.path.join(HERE, "cases", name + ".py")], PYTHONPATH=os.path.join(HERE, "site-packages"))
    target = os.path.join(box.scratch, folder)
    shutil.move(run.folder, target)
    return target, run


def without_dump(box, recording, folder):
    target = os.path.join(box.scratch, folder)
    shutil.copytree(recording, target, ignore=shutil.ignore_patterns("*.cudacore", "*.json"))
    shutil.copy(os.path.join(recording, "run.json"), target)
    return target


def dump_of(recording):
    return next(os.path.join(recording, n) for n in os.listdir(recording) if n.endswith(".cudacore"))


def write(box, name, text):
    path = os.path.join(box.scratch, name)
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)
    return path


def log_of(box, name, message, file, line, more=""):
    return write(box, name, 'Traceback (most recent call last):\n  File "%s", line %d, in <module>\n    step()\n%s\n%s' % (file, line, message, more))


def snapshot(box, name, **how):
    path = os.path.join(box.scratch, name)
    make_snapshot.write(path, make_snapshot.make(story="capacity", **how))
    return path


def bundle(box, name, gpu="NVIDIA H200", driver="570.133.20"):
    """A healthy machine of tests/doctor with another GPU and driver."""
    with open(os.path.join(HERE, "..", "doctor", "machines", "docker-h200.json"), encoding="utf-8") as stream:
        text = stream.read()
    return write(box, name, text.replace("NVIDIA H200", gpu).replace("570.133.20", driver))


ILLEGAL = "RuntimeError: CUDA error: an illegal memory access was encountered"


def rule__a_dump_joins_the_recording_that_launched_its_kernel(box):
    whole, _ = case_run(box, "fault_oob", "whole")
    alone = without_dump(box, whole, "alone")
    verdict = explain(box, alone, dump_of(whole))
    joined(verdict, "a GPU core dump")
    own = explain(box, whole)
    for key in ("cause", "certainty", "where", "fault", "kernel", "why"):
        same(verdict[key], own[key], key)


def without_mark(recording):
    """As if the recorder had armed no dump, and the driver's own variables had."""
    path = os.path.join(recording, "run.json")
    with open(path, encoding="utf-8") as stream:
        run = json.load(stream)
    for process in run["processes"]:
        process.pop("dump_mark", None)
        process.pop("dump_real_ns", None)
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(run, stream)


def rule__a_dump_of_another_run_that_launched_the_same_is_judged_by_itself(box):
    whole, _ = case_run(box, "fault_oob", "whole")
    other, _ = case_run(box, "fault_freed", "other")
    alone = without_dump(box, whole, "alone")
    for recording, why in ((whole, "the address differs"), (alone, "this process wrote another dump")):
        verdict = explain(box, recording, dump_of(other))
        apart(verdict, why)
        same(len(verdict["others"]), 1, "other verdicts")


def rule__a_dump_by_an_unknown_process_makes_nothing_certain(box):
    whole, _ = case_run(box, "fault_oob", "whole")
    alone = without_dump(box, whole, "alone")
    without_mark(alone)
    verdict = explain(box, alone, dump_of(whole))
    joined(verdict, "a GPU core dump")
    assert "may still be of another run" in joins(verdict)[0], joins(verdict)
    same(verdict["certainty"], "likely", "certainty")
    named = os.path.join(box.scratch, "core.cuda.host.%d" % verdict["process"]["pid"])
    shutil.copy(dump_of(whole), named)
    same(explain(box, alone, named)["certainty"], "certain", "certainty with the name of this process")
    os.rename(named, named + "7")
    apart(explain(box, alone, named + "7"), "its name is that of another process")
    os.utime(dump_of(whole), (1e9, 1e9))
    apart(explain(box, alone, dump_of(whole)), "it is older than this process")


OTHER = """
import ctypes
import cudrv
cudrv.init()
cudrv.launch(cudrv.kernel("oob_store"), (7,), (32,), cudrv.u64(cudrv.alloc(4096)), ctypes.c_int64(1 << 40))
cudrv.synchronize()
"""


def rule__a_dump_of_another_launch_is_judged_by_itself(box):
    whole, _ = case_run(box, "fault_oob", "whole")
    other = box.under(box.script(OTHER), PYTHONPATH=os.path.join(HERE, "site-packages")).folder
    alone = without_dump(box, whole, "alone")
    without_mark(alone)
    verdict = explain(box, alone, dump_of(other))
    apart(verdict, "has no matching launch")
    same(len(verdict["others"]), 1, "other verdicts")


def rule__a_log_joins_the_recording_of_its_exception(box):
    recording, _ = case_run(box, "fault_oob", "recording")
    seen = explain(box, recording)
    log = log_of(box, "train.log", ILLEGAL, seen["noticed"]["file"], seen["noticed"]["line"],
                 "NVRM: Xid (PCI:0000:01:00): 31, pid=1, name=python, Ch 00000008\n")
    verdict = explain(box, log, recording)
    joined(verdict, "a text")
    same(verdict["where"], seen["where"], "the line")


def rule__a_log_of_another_program_is_judged_by_itself(box):
    recording, _ = case_run(box, "fault_oob", "recording")
    verdict = explain(box, recording, log_of(box, "serve.log", ILLEGAL, "/srv/serve.py", 9))
    apart(verdict, "only the error is the same")
    verdict = explain(box, recording, log_of(box, "oom.log", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
                                             "GPU 0 has a total capacity of 79.15 GiB of which 1.00 GiB is free.", "/srv/serve.py", 9))
    apart(verdict, "the error differs: 700, 2")


def rule__a_log_gives_the_dump_its_assertion_and_its_line(box):
    dump = os.path.join(REAL, "asserts.cudacore.gz")
    alone = explain(box, dump)["fault"]["assert"]
    line = "%s:%d: asserts: block: [0,0,0], thread: [35,0,0] Assertion `%s` failed.\n" % (alone["file"], alone["line"], alone["condition"])
    text = line + 'Traceback (most recent call last):\n  File "train.py", line 41, in <module>\n    step()\nRuntimeError: CUDA error: device-side assert triggered\n'
    verdict = explain(box, write(box, "train.log", text), dump)
    joined(verdict, "a text")
    same((verdict["noticed"]["file"], verdict["noticed"]["line"]), ("train.py", 41), "where it was noticed")
    other = explain(box, write(box, "other.log", text.replace("%s:%d:" % (alone["file"], alone["line"]), "other.cu:7:")), dump)
    apart(other, "the file of the assertion differs")


def oom_text(request, allocated):
    return ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %.2f MiB. GPU 0 has a total capacity of 79.15 GiB of which 0.10 GiB is "
            "free. Of the allocated memory %.2f GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated."
            % (request / (1 << 20), allocated / GIB))


def rule__a_log_joins_the_snapshot_of_its_oom(box):
    path = snapshot(box, "memory.pickle")
    alone = explain(box, path)["memory"]
    log = log_of(box, "train.log", oom_text(alone["request"], alone["torch_allocated"]), "train.py", 9)
    verdict = explain(box, path, log)
    joined(verdict, "a text")
    assert verdict["memory"]["total"], "the text knows the size of the card, the snapshot does not"
    other = explain(box, path, log_of(box, "other.log", oom_text(alone["request"] * 3, alone["torch_allocated"] / 2), "train.py", 9))
    apart(other, "the requested size differs")


def rule__a_snapshot_of_another_failure_does_not_join_a_recording(box):
    recording, _ = case_run(box, "oom_capacity", "recording")
    apart(explain(box, recording, snapshot(box, "memory.pickle")), "differs")


def rule__a_dump_and_a_snapshot_share_nothing(box):
    apart(explain(box, os.path.join(REAL, "illegal-address.cudacore.gz"), snapshot(box, "memory.pickle")), "nothing ties them together")


def rule__a_bundle_joins_the_log_that_names_its_machine(box):
    text = "Driver Version: 570.133.20\nGPU 0: NVIDIA H200\n"
    log = log_of(box, "train.log", ILLEGAL, "train.py", 41, text)
    joined(explain(box, log, bundle(box, "same.json")), "a doctor bundle")
    other = explain(box, log, bundle(box, "other.json", gpu="Tesla V100-SXM2-16GB", driver="470.57.02"))
    assert not any(j.startswith("joined") for j in joins(other)), joins(other)


def rule__a_bundle_of_another_machine_does_not_join_a_recording_or_dump(box):
    recording, _ = case_run(box, "fault_oob", "recording")
    for path in (recording, os.path.join(REAL, "trap.cudacore.gz"), snapshot(box, "memory.pickle")):
        verdict = explain(box, path, bundle(box, "other.json", gpu="Tesla V100-SXM2-16GB", driver="470.57.02"))
        assert not any(j.startswith("joined") for j in joins(verdict)), joins(verdict)


def rule__the_order_of_inputs_does_not_matter(box):
    whole, _ = case_run(box, "fault_oob", "whole")
    alone = without_dump(box, whole, "alone")
    log = log_of(box, "serve.log", ILLEGAL, "/srv/serve.py", 9)

    def answer(*paths):
        return re.sub(r'"time[^,]*,', "", json.dumps(explain(box, *paths)))

    same(answer(alone, dump_of(whole), log), answer(log, dump_of(whole), alone), "the answer")


def copy_of(box, recording, folder):
    target = os.path.join(box.scratch, folder)
    shutil.copytree(recording, target)
    return target


def rule__two_recordings_are_two_runs_even_with_one_pid(box):
    one, _ = case_run(box, "fault_oob", "one")
    two = copy_of(box, one, "two")
    alone = explain(box, one)
    both = explain(box, one, two)
    apart(both, "two inputs of the same kind are never joined")
    for key in ("cause", "certainty", "where", "why"):
        same(both[key], alone[key], key)


def rule__a_file_given_twice_counts_once(box):
    recording, _ = case_run(box, "fault_oob", "recording")
    link = os.path.join(box.scratch, "link")
    os.symlink(recording, link)
    alone, twice = explain(box, recording), explain(box, recording, link)
    same(joins(twice), [], "joined")
    for key in ("cause", "certainty", "where", "why", "others"):
        same(twice[key], alone[key], key)


def rule__what_one_input_adds_may_tie_the_next(box):
    """The recording alone does not know the assertion; its dump does, and the log has it, too."""
    whole, _ = case_run(box, "fault_assert", "whole")
    alone = without_dump(box, whole, "alone")
    said = explain(box, dump_of(whole))["fault"]["assert"]
    log = write(box, "kernel.log", "%s:%d: %s: block: [0,0,0], thread: [0,0,0] Assertion `%s` failed.\n"
                % (said["file"], said["line"], said["function"] if "function" in said else "f", said["condition"]))
    verdict = explain(box, alone, dump_of(whole), log)
    same(len([j for j in joins(verdict) if j.startswith("joined with")]), 2, "joined: %s" % joins(verdict))
    same((verdict["cause"], verdict["certainty"]), (explain(box, whole)["cause"], explain(box, whole)["certainty"]), "answer")


def rule__each_process_gets_its_own_dump(box):
    """Two processes of one run, two dumps, in either order."""
    both = box.script("import os, subprocess, sys\n"
                      "for name in ('fault_oob', 'fault_freed'):\n"
                      "    subprocess.run([sys.executable, os.path.join(%r, name + '.py')])\n" % os.path.join(HERE, "cases"))
    recording = box.under(both, PYTHONPATH=os.path.join(HERE, "site-packages")).folder
    dumps = sorted(os.path.join(recording, n) for n in os.listdir(recording) if n.endswith(".cudacore"))
    same(len(dumps), 2, "dumps")
    own, alone = explain(box, recording), without_dump(box, recording, "alone")
    for order in (dumps, dumps[::-1]):
        verdict = explain(box, alone, *order)
        same([verdict["cause"], verdict["certainty"]] + [o["cause"] for o in verdict["others"]],
             [own["cause"], own["certainty"]] + [o["cause"] for o in own["others"]], "answers")


def rule__a_machine_that_nothing_ties_to_the_failure_comes_second(box):
    log = log_of(box, "train.log", ILLEGAL, "train.py", 41)
    with open(os.path.join(HERE, "..", "doctor", "machines", "fabric-stopped.json"), encoding="utf-8") as stream:
        machine = write(box, "machine.json", stream.read())
    verdict = explain(box, log, machine)
    same((verdict["cause"], [o["cause"] for o in verdict["others"]]), (explain(box, log)["cause"], ["fabric-manager-not-ready"]), "answers")
