# SPDX-License-Identifier: Apache-2.0
# SIGINT to the whole process group reaches the program once.
command -v setsid >/dev/null || { echo "no setsid"; exit 77; }
cat > prog <<'P'
import os, signal, time
n = 0
def count(*_):
    global n
    n += 1
signal.signal(signal.SIGINT, count)
open("ready", "w").close()
while not n:
    time.sleep(0.01)
time.sleep(0.3)  # for a second one
print(n, "signals")
P
setsid cuwhy run python3 prog &
while [ ! -e ready ]; do sleep 0.02; done
kill -INT -$!
wait $!
