# SPDX-License-Identifier: Apache-2.0
# On a terminal: Ctrl-C reaches the program once, Ctrl-Z stops both, fg continues both.
cat > prog.py <<'P'
import os, signal, time
n = 0
def count(*_):
    global n
    n += 1
signal.signal(signal.SIGINT, count)
# not print: inside the print below, where Ctrl-Z may stop it, that would be an exception (reentrant call)
signal.signal(signal.SIGCONT, lambda *_: os.write(1, b"goes on\n"))
print("ready", flush=True)
while n == 0:
    time.sleep(0.01)
time.sleep(0.3)  # for a second one
print(n, "signals", flush=True)
P
cat > screen.py <<'P'
import os, pty, re, select, time

pid, fd = pty.fork()
if pid == 0:
    os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])

text = ""    # what was read and not expected yet

def expect(pattern, seconds=300):
    global text
    end = time.time() + seconds
    while time.time() < end:
        found = re.search(pattern, text)
        if found:
            text = text[found.end():]
            return found.group(0)
        if select.select([fd], [], [], 0.05)[0]:
            text += os.read(fd, 4096).decode()
    return "no %r in %r" % (pattern, text)

def type_in(text):
    os.write(fd, text.encode())

type_in("PS1=; unset PROMPT_COMMAND\ncuwhy run python3 prog.py\n")
print(expect(r"\bready\b"))
type_in("\x1a")
print(expect(r"Stopped"))
type_in("fg\n")
expect(r"goes on")
type_in("\x03")
print(expect(r"\d+ signals"))
type_in("echo status=$?\n")
print(expect(r"status=\d+"))
P
command -v bash >/dev/null || { echo "no bash"; exit 77; }
python3 screen.py
