# SPDX-License-Identifier: Apache-2.0
# On a terminal there are colors; with NO_COLOR there are none, for any command.
cuwhy run --gpu sim:tiny --out o gpu grid 1 2>/dev/null
echo '{"cuwhy_bundle": 1, "cuda": {"trouble": "no-library"}, "host": {"kernel": {"nvidia": false}, "gpu": []}}' >bundle.json
cat >screen.py <<'P'
import os, pty, sys

def seen(environment, *command):
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(environment)
        os.execvp(command[0], command)
    text = b""
    try:
        while True:
            part = os.read(fd, 65536)
            if not part:
                break
            text += part
    except OSError:
        pass
    os.waitpid(pid, 0)
    return "colors" if b"\x1b[" in text else "plain" if text else "nothing"

# standard input is passed on, and the answer goes to stderr: --color counts there, too
log = "RuntimeError: CUDA error: device-side assert triggered"
for more in ([], ["--color", "never"]):
    print("explain -", *more, seen({"TERM": "xterm"}, "sh", "-c", "echo '%s' | cuwhy explain %s -" % (log, " ".join(more))))
for command in (["run", "--gpu", "sim:tiny", "gpu", "grid", "1"], ["explain", "o"], ["explain", "700"], ["explain", "oom-fragmentation"],
                ["explain", "--list"], ["doctor", "bundle.json"], ["memory", "o"], ["export", "--chrome-trace", "-o", "t.json", "o"], ["--help"]):
    print(command[0], *[seen(more, "cuwhy", *command) for more in ({"TERM": "xterm"}, {"TERM": "xterm", "NO_COLOR": "1"}, {"TERM": "dumb"})])
P
python3 screen.py
