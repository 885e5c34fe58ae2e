#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's thread ranks on one GPU: do their wrong gradients come from cuwhy, or from a race that cuwhy only uncovers?

    tests/gpu/thread_ranks.py [--build build] [--python python3] [--times 5] [--cpu]

PyTorch's tests of FSDP run the ranks of a job as threads that share one GPU (torch.testing._internal.distributed.multi_threaded_pg). There,
rank 0 launches all copies of a collective in its own current stream, and nothing makes that stream wait for the other ranks' streams,
nor theirs for it. So what a rank gives may be read before it is written (`early input`), and what it gets may be read before it is
there (`late output`). Both are shown without cuwhy, by kernels that sleep, and again with a group that orders the streams. Then a
small sharded model is trained for one step, many times in each way, and its gradients are compared with the unsharded model's:

    plain             without cuwhy
    cuwhy             under it
    no dump           under it with --no-core-dump, where the recorder makes no stream
    more streams      without cuwhy, after one stream of the greatest priority was made, as the recorder makes one
    ordered           without cuwhy; the group orders the streams
    cuwhy, ordered    under it; the group orders the streams

Status 1: gradients are wrong under cuwhy though the streams are ordered, and right without it: that is no race, it is cuwhy. Without a GPU or
PyTorch everything is skipped, with a message. --cpu tries the program itself: there are no streams, and everything must be right.
"""
import argparse
import contextlib
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import threading
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
RANKS = 4
CYCLES = 100_000_000        # that a stream sleeps: 50 ms or more
LIMIT = 180                 # seconds for one program
MARK = "thread-ranks: "


# ---- in the program -----------------------------------------------------------------------------------


class Streams:
    """The streams of one device; on the CPU there are none."""

    def __init__(self, device):
        import torch
        self.torch, self.gpu = torch, device == "cuda"

    def own(self):
        return self.torch.cuda.stream(self.torch.cuda.Stream()) if self.gpu else contextlib.nullcontext()

    def sleep(self):
        if self.gpu:
            self.torch.cuda._sleep(CYCLES)

    def written(self):
        return self.torch.cuda.current_stream().record_event() if self.gpu else None

    def wait_for(self, events):
        for event in events if self.gpu else ():
            self.torch.cuda.current_stream().wait_event(event)

    def finish(self):
        if self.gpu:
            self.torch.cuda.synchronize()


def order_streams(streams):
    """Makes every collective do what a real process group does: read when all have written, return when all has been copied."""
    from torch.testing._internal.distributed import multi_threaded_pg as threaded

    class Copies:
        def __init__(self, collective):
            self.collective, self.given, self.copied = collective, {}, None

        def work(self, data):
            streams.wait_for(self.given.values())
            self.collective.work(data)
            self.copied = streams.written()

    class Ordered(threaded.Collective):
        def __init__(self, world_size, collective, group):
            super().__init__(world_size, Copies(collective), group)

        def join(self, rank, data):
            self._collective.given[rank] = streams.written()
            result = super().join(rank, data)
            streams.wait_for([self._collective.copied])
            return result

    threaded.Collective = Ordered


def each_rank(count, job):
    """Runs JOB(rank) on a thread of each rank and returns what they returned; the first exception is raised."""
    import torch
    import torch.distributed as dist
    from torch.testing._internal.distributed import multi_threaded_pg as threaded
    results, failed, store = [None] * count, [], dist.HashStore()

    def run(rank):
        try:
            dist.init_process_group(backend="threaded", rank=rank, world_size=count, store=store)
            results[rank] = job(rank)
        except BaseException as error:      # the others wait for this rank
            failed.append(error)
            threaded.ProcessLocalGroup.exception_handle(error)

    torch._C._distributed_c10d._set_thread_isolation_mode(True)    # else the ranks' groups have one register
    threaded._install_threaded_pg()
    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    threaded._uninstall_threaded_pg()
    if failed:
        raise failed[0]
    return results


def sums(device, streams, slow):
    """Two ranks add up ones; the stream of rank SLOW sleeps before its part. How many of all elements were right when they were read."""
    import torch
    import torch.distributed as dist
    elements, expected = 1 << 16, 3.0

    def add_up(rank, slow):
        data = torch.zeros(elements, device=device)
        right = torch.empty((), dtype=torch.int64, device=device)
        streams.finish()
        dist.barrier()
        if rank == slow:
            streams.sleep()
        data.fill_(rank + 1)
        dist.all_reduce(data)
        right.copy_((data == expected).sum())       # in this rank's stream, after the collective
        streams.finish()
        return int(right), elements

    def job(rank):
        with streams.own():
            add_up(rank, slow=None)     # the driver loads a kernel when it is first launched, and waits for all streams then
            return add_up(rank, slow)

    return each_rank(2, job)


def model_of(device):
    import torch
    torch.manual_seed(1)
    layers = [torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64)]
    return torch.nn.Sequential(*layers).to(device)


def gradients(device, streams):
    """One step of a sharded model. For each rank: of how many parameters, how many gradients are right at once and how many in the end."""
    import copy
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    whole = model_of(device)
    inputs = [torch.randn(8, 64, device=device) for _ in range(RANKS)]
    copies = [copy.deepcopy(whole) for _ in range(RANKS)]
    for one in inputs:
        whole(one).square().sum().backward()
    expected = [[part.clone() for part in (p.grad / RANKS).chunk(RANKS)] for p in whole.parameters()]
    streams.finish()

    def close(grad, rank, index):
        """A tensor: reading it here would wait for the GPU."""
        wanted = expected[index][rank]
        return (grad - wanted).abs().max() <= 1e-3 * wanted.abs().max()

    def job(rank):
        model, mesh = copies[rank], init_device_mesh(device, (RANKS,))
        for layer in model:
            if any(True for _ in layer.parameters()):
                fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        model(inputs[rank]).square().sum().backward()
        shards = [p.grad.to_local() for p in model.parameters()]
        at_once = [close(shard, rank, i) for i, shard in enumerate(shards)]
        streams.finish()
        in_the_end = [close(shard, rank, i) for i, shard in enumerate(shards)]
        return sum(map(bool, at_once)), sum(map(bool, in_the_end)), len(shards)

    return each_rank(RANKS, job)


def extra_stream():
    """What the recorder makes in every context: a stream of the greatest priority that waits for no other."""
    cuda, least, greatest, stream = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
    codes = (cuda.cuCtxGetStreamPriorityRange(ctypes.byref(least), ctypes.byref(greatest)),
             cuda.cuStreamCreateWithPriority(ctypes.byref(stream), 1, greatest))
    if any(codes):
        raise RuntimeError("no stream: CUDA errors %d and %d" % codes)


def part(words, device):
    import torch
    streams = Streams(device)
    torch.zeros(1, device=device)
    if "ordered" in words:
        order_streams(streams)
    if "stream" in words and streams.gpu:
        extra_stream()
    if words[0] == "gradients":
        rows = gradients(device, streams)
        at_once, in_the_end, of = (sum(row[i] for row in rows) for i in range(3))
        result = {"right": at_once, "later": in_the_end, "of": of}
    else:
        rows = sums(device, streams, slow={"input": 1, "output": 0}[words[0]])
        result = {"right": sum(row[0] for row in rows), "of": sum(row[1] for row in rows)}
    print(MARK + json.dumps(result), flush=True)


# ---- around it ----------------------------------------------------------------------------------------


class Runner:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.command = [args.python, os.path.abspath(__file__)] + (["--cpu"] if args.cpu else []) + ["--part"]

    def run(self, words, cuwhy=None):
        """Its result; or what became of it, in words."""
        under = [] if cuwhy is None else [os.path.join(os.path.abspath(self.args.build), "cuwhy"), "run", "--out",
                                          os.path.join(self.folder, "recording"), "-f", *cuwhy, "--"]
        env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", PYTHONWARNINGS="ignore")
        try:
            done = subprocess.run([*under, *self.command, *words], capture_output=True, text=True, timeout=LIMIT, env=env)
        except subprocess.TimeoutExpired:
            return "still running after %d s" % LIMIT
        said = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
        if done.returncode == 0 and said:
            return json.loads(said[-1][len(MARK):])
        return "status %d: %s" % (done.returncode, (done.stderr.strip().splitlines() or ["nothing"])[-1])


def is_right(result):
    return isinstance(result, dict) and result["right"] == result["of"] and result.get("later", result["of"]) == result["of"]


def said(result):
    if not isinstance(result, dict):
        return result
    return "%d of %d right" % (result["right"], result["of"]) + (
        ", %d in the end" % result["later"] if result.get("later", result["right"]) != result["right"] else "")


SHOWN = (("early input", ["input"]), ("early input, ordered", ["input", "ordered"]),
         ("late output", ["output"]), ("late output, ordered", ["output", "ordered"]))
WAYS = (("plain", [], None), ("cuwhy", [], []), ("no dump", [], ["--no-core-dump"]), ("more streams", ["stream"], None),
        ("ordered", ["ordered"], None), ("cuwhy, ordered", ["ordered"], []))


def show_race(runner):
    """{name: right}"""
    found = {}
    for name, words in SHOWN:
        result = runner.run(words)
        found[name] = is_right(result) if isinstance(result, dict) else None
        print("%-22s %s" % (name, said(result)), flush=True)
    return found


def try_ways(runner, times):
    """{name: how often the gradients were right}; None: it did not run."""
    results = {name: [] for name, _, _ in WAYS}
    for _ in range(times):
        for name, words, cuwhy in WAYS:     # in turn, so that what changes on the machine hits all of them
            results[name].append(runner.run(["gradients", *words], cuwhy))
    for name, _, _ in WAYS:
        wrong = [r for r in results[name] if not is_right(r)]
        print("%-22s %d of %d right%s" % (name, times - len(wrong), times, "; " + said(wrong[0]) if wrong else ""), flush=True)
    return {name: sum(map(is_right, rows)) if all(isinstance(r, dict) for r in rows) else None for name, rows in results.items()}


def conclude(race, right, times):
    """The sentence that follows, and the exit status."""
    if None in race.values() or None in right.values():
        return "some did not run: nothing follows", 2
    if right["cuwhy, ordered"] < times and right["ordered"] == times:
        return "wrong under cuwhy though the streams are ordered: this is not the group's race, look at the recorder", 1
    if right["ordered"] < times:
        return "wrong without cuwhy though the streams are ordered: neither the race nor cuwhy explains it", 2
    shown = [name for name in ("early input", "late output") if not race[name] and race[name + ", ordered"]]
    if not shown:
        healthy = all(right[name] == times for name in right)
        return "the race did not show" + ("; all gradients are right" if healthy else ", yet gradients are wrong: nothing follows"), 0 if healthy else 2
    text = "without cuwhy, thread ranks race (%s); ordered streams mend it, under cuwhy as well" % ", ".join(shown)
    if right["cuwhy"] < times:
        text += "; cuwhy uncovers it" + (", and so does one more stream without cuwhy" if right["more streams"] < times else "") + (
            ", but not with --no-core-dump" if right["no dump"] == times else ", with --no-core-dump too")
    return text, 0


def missing(args):
    """Why nothing can be tried here."""
    probe = "import torch, torch.testing._internal.distributed.multi_threaded_pg, torch.distributed.fsdp as f; f.fully_shard; print(torch.cuda.is_available())"
    done = subprocess.run([args.python, "-c", probe], capture_output=True, text=True)
    if done.returncode:
        return "no PyTorch with fully_shard and thread ranks"
    return None if args.cpu or done.stdout.strip() == "True" else "no GPU"


def main():
    parser = argparse.ArgumentParser(description="wrong gradients of thread ranks: whose fault are they")
    parser.add_argument("--build", default="build", help="folder that make has filled")
    parser.add_argument("--python", default=os.environ.get("PYTHON", sys.executable))
    parser.add_argument("--times", type=int, default=5, help="how often each way is tried")
    parser.add_argument("--cpu", action="store_true", help="try the program itself, without a GPU")
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.part:
        try:
            part(args.part, "cpu" if args.cpu else "cuda")
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(3)         # threads of other ranks may wait for ever
        return 0
    why = missing(args)
    if why:
        print("ok - thread ranks # SKIP %s" % why)
        return 0
    with tempfile.TemporaryDirectory(prefix="cuwhy-ranks-") as folder:
        runner = Runner(args, folder)
        race = show_race(runner)
        right = try_ways(runner, args.times)
    text, status = conclude(race, right, args.times)
    print("%s - %s" % ("not ok" if status else "ok", text))
    return status


if __name__ == "__main__":
    sys.exit(main())
