# SPDX-License-Identifier: Apache-2.0
# A damaged run.json is no reason to give up.
cuwhy run --gpu sim:tiny --out o gpu grid 1 2>/dev/null
echo '{"processes": [{"part": "../../etc/passwd"}, 7, {"part": 3}], ' > o/run.json
cuwhy explain --json o > json
status=$?
grep -o '"cause":"[a-z-]*"' json | head -1
exit $status
