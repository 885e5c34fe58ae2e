# SPDX-License-Identifier: Apache-2.0
# A Chrome trace of two processes: JSON with their launches, calls and failures.
cuwhy run --gpu sim:tiny --out o gpu twice 1 2>/dev/null
cuwhy export --chrome-trace -o trace.json o | sed 's/[0-9][0-9]*/N/g'
cat >look.py <<'P'
import json
trace = json.load(open("trace.json"))
events = trace["traceEvents"]
print(sorted(set(e["ph"] for e in events)), len(set(e["pid"] for e in events)), "processes")
print(sorted(set(e["name"] for e in events if e["ph"] == "X" and e["cat"] == "kernel")))
print(sorted(set(e["name"].split(" ")[0] for e in events if e["ph"] == "X" and e["cat"] == "driver"))[:3])
failures = [e for e in events if e.get("cat") == "failure"]
print(len(failures), failures[0]["name"], failures[0]["args"]["error"], failures[0]["s"])
verdicts = [e for e in events if e.get("cat") == "verdict"]
print(len(verdicts), verdicts[0]["args"]["cause"], verdicts[0]["s"])
rows = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
for e in events:
    if e["ph"] == "M":
        continue
    assert e["ts"] > 0 and (e["ph"] != "X" or (e["dur"] > 0 and (e["pid"], e["tid"]) in rows)), e
last = {}
for e in sorted((e for e in events if e["ph"] == "X"), key=lambda e: e["ts"]):
    assert last.get((e["pid"], e["tid"]), 0) <= e["ts"] + 0.001, "events of one row overlap"
    last[e["pid"], e["tid"]] = e["ts"] + e["dur"]
print("rows are in order")
P
python3 look.py
cuwhy export --chrome-trace --pid 1 -o none.json o
[ ! -e none.json ] || echo written
cuwhy export --chrome-trace -o - o | cmp - trace.json && echo "the same on standard output"
cuwhy export --chrome-trace -o /nowhere/x o
cuwhy export --chrome-trace --torch-snapshot -o x o
cuwhy export --chrome-trace --json -o - o
ls
