#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`cuwhy explain --pid` on a real GPU: tests/gpu/hang.py [--build build] [--python PYTHON] [NAME ...]

Programs with PyTorch that hang (a kernel that spins, synchronized in several ways; a rank that waits; a loader) and programs that train. Cause and
line must be right in all of those that hang; none that trains may be called hung; and a training that is looked at 50 times must compute what it
computes alone. Prints as it goes; needs no network and no other package than PyTorch. The exit status is 0 if all is well."""
import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

START = """import os, sys, time, torch
SPIN = 1 << 50      # cycles: days
def ready():
    print("ready", flush=True)
x = torch.ones(1 << 10, device="cuda")
other = (x + 1).sum()
torch.cuda.synchronize()
"""

# name -> (cause, words for what it waits for, program); the line to name ends with "# <- here"
HUNG = {
    "synchronize": ("kernel-hang", "cuda", START + """
def step():
    torch.cuda._sleep(SPIN)
    ready()
    torch.cuda.synchronize()  # <- here
step()
"""),
    "item": ("kernel-hang", "cuda", START + """
def loss():
    torch.cuda._sleep(SPIN)
    y = x.sum()
    ready()
    return y.item()  # <- here
loss()
"""),
    "event": ("kernel-hang", "cuda", START + """
event = torch.cuda.Event()
torch.cuda._sleep(SPIN)
event.record()
ready()
event.synchronize()  # <- here
"""),
    "blocking_event": ("kernel-hang", "cuda", START + """
event = torch.cuda.Event(blocking=True)
torch.cuda._sleep(SPIN)
event.record()
ready()
event.synchronize()  # <- here
"""),
    "copy": ("kernel-hang", "cuda", START + """
torch.cuda._sleep(SPIN)
ready()
host = x.cpu()  # <- here
"""),
    "gloo_rank": ("hang-peer", "collective", START + """
import torch.distributed as dist
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[1], WORLD_SIZE="2")
rank = 0 if os.fork() else 1
dist.init_process_group("gloo", rank=rank, world_size=2)
if rank == 1:
    time.sleep(100000)
ready()
def reduce():
    dist.all_reduce(torch.ones(4))  # <- here
reduce()
""".replace('x = torch.ones(1 << 10, device="cuda")', "")),
    "loader": ("hang-other-process", "worker", START.split("x = torch")[0] + """
class Data(torch.utils.data.Dataset):
    def __len__(self): return 8
    def __getitem__(self, i):
        time.sleep(100000)
def main():
    loader = torch.utils.data.DataLoader(Data(), num_workers=1)
    ready()
    for batch in loader:  # <- here
        pass
if __name__ == "__main__":
    main()
"""),
}
HUNG["gloo_rank"] = HUNG["gloo_rank"][:2] + (HUNG["gloo_rank"][2].replace(START, START.split("x = torch")[0]),)

TRAINS = START + """
torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.randn(256, 512, device="cuda")
def train(steps):
    for step in range(steps):
        optimizer.zero_grad()
        loss = (model(data) - data).square().mean()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            last = loss.item()
        if step == 20:
            ready()
    return loss.item()
began = time.time()
print(repr(train(int(sys.argv[2]))), flush=True)
print(time.time() - began, file=sys.stderr)
"""


LOOKED_AT_S = 60    # 50 looks take half a second each, symbols of PyTorch's libraries included


def free_port():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def here(text):
    return [n for n, line in enumerate(text.splitlines(), 1) if line.endswith("# <- here")][0]


@contextlib.contextmanager
def running(python, text, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.py")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        process = subprocess.Popen([python, path, free_port(), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True, env=dict(os.environ, CUBLAS_WORKSPACE_CONFIG=":4096:8"))
        try:
            said = process.stdout.readline()
            if said != "ready\n":
                os.killpg(process.pid, signal.SIGKILL)
                raise RuntimeError("said %r: %s" % (said, process.communicate()[1][-2000:]))
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def look(cuwhy, pid, *options):
    run = subprocess.run([cuwhy, "explain", "--json", "--pid", str(pid), *options], capture_output=True, text=True)
    return run.returncode, json.loads(run.stdout)


def check_hung(cuwhy, python, name):
    cause, waits, text = HUNG[name]
    wrong = []
    for options in ((), ("--no-stop",)):
        with running(python, text) as process:
            time.sleep(2)
            status, told = look(cuwhy, process.pid, *options)
            words = subprocess.run([cuwhy, "explain", "--pid", str(process.pid), *options], capture_output=True, text=True).stdout
        live = told.get("live", {})
        thread = next((t for t in live.get("threads", []) if t["tid"] == live["thread"]), {})
        got = (status, told.get("cause"), thread.get("waits"), (told.get("where") or {}).get("line"))
        if not options:
            print("    " + words.replace("\n", "\n    ").rstrip())
        print("    %s: %s; GPUs %s; longest stop %s us; native %s" % (
            " ".join(options) or "stopping", got, live.get("gpus"), live.get("longest_stop_us"),
            [f["function"] or f["library"] for f in thread.get("native", [])][:6]), flush=True)
        want = (1, cause, waits, here(text))
        # without a stop, a thread that spins inside the driver has no native stack: a loop is then all that can be known
        if got != want and not (options and cause == "kernel-hang" and got[::3] == want[::3] and got[1] == "hang-loop"):
            wrong.append("%s %s: %s, expected %s" % (name, options, got, want))
    return wrong


def check_trains(cuwhy, python, steps):
    wrong, results, hung, longest, seconds = [], [], 0, 0, []
    if not steps:
        with running(python, TRAINS, "2000") as process:
            rate = 2000 / float(process.communicate()[1].strip().splitlines()[-1])
        steps = int(rate * LOOKED_AT_S)
        print("    %.0f steps a second: %d steps" % (rate, steps), flush=True)
    for looks in (0, 50, 0, 50):
        with running(python, TRAINS, str(steps)) as process:
            done = 0
            while done < looks and process.poll() is None:
                status, told = look(cuwhy, process.pid, "--look", "100ms")
                if "live" in told:
                    done += 1
                    longest = max(longest, told["live"]["longest_stop_us"])
                    if told["live"]["hung"]:
                        hung += 1
                        print("    called hung: %s at %s" % (told["title"], told["where"] and told["where"]["line"]), flush=True)
            out, err = process.communicate()
        results.append((process.returncode, out.strip()))
        seconds.append(float(err.strip().splitlines()[-1]))
        print("    %d looks: %s, %.1f s" % (done, results[-1], seconds[-1]), flush=True)
        if looks and done < looks:
            wrong.append("only %d looks: give it more --steps" % done)
    print("    longest stop %d us" % longest)
    if len(set(results)) != 1 or results[0][0] != 0:
        wrong.append("results differ: %s" % results)
    if hung:
        wrong.append("called hung %d times" % hung)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--steps", type=int, default=0, help="of the training that is looked at; default: what takes a minute")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    cuwhy = os.path.abspath(os.path.join(options.build, "cuwhy"))
    wrong = []
    for name in options.names or list(HUNG) + ["trains"]:
        print(name, flush=True)
        try:
            found = check_trains(cuwhy, options.python, options.steps) if name == "trains" else check_hung(cuwhy, options.python, name)
        except Exception as error:
            found = ["%s: %s: %s" % (name, type(error).__name__, error)]
        print("    " + ("; ".join(found) or "right"), flush=True)
        wrong += found
    print("\n%d wrong" % len(wrong) if wrong else "\nall right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
