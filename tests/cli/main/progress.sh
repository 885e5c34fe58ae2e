# SPDX-License-Identifier: Apache-2.0
# A driver that does not answer: on a terminal a line says what takes so long, and goes before the answer comes.
# Never with --json, into a file, or on a terminal that cannot.
cat >screen.py <<'P'
import os, pty, subprocess, sys

def seen(command, terminal=True, **more):
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "LD_LIBRARY_PATH": os.environ["BUILD"] + "/sim", "CUWHY_SIM": "tiny", "CUWHY_SIM_NVML": "hang=nvmlInit_v2", **more}
    child = subprocess.Popen(["cuwhy"] + command, env=environment, stdout=subprocess.DEVNULL, stderr=theirs if terminal else subprocess.PIPE)
    os.close(theirs)
    text = b"" if terminal else child.stderr.read()
    try:
        while terminal:
            part = os.read(ours, 65536)
            if not part:
                break
            text += part
    except OSError:
        pass
    child.wait()
    lines = text.split(b"\r")
    drawn = [l for l in lines if b" s\x1b[K" in l]
    return drawn, text

for command, what in ((["doctor", "--timeout", "2"], b"checking this machine"), (["memory"], b"querying the NVIDIA driver")):
    drawn, text = seen(command)
    print(command[0], "drawn:", bool(drawn) and all(what in l for l in drawn), "gone:", b"\r\x1b[K" in text.split(b" s\x1b[K")[-1])
    print(command[0], "with --json:", len(seen(command + ["--json"])[0]))
    print(command[0], "into a pipe:", len(seen(command, terminal=False)[0]), "on a dumb one:", len(seen(command, TERM="dumb")[0]))
P
python3 screen.py
