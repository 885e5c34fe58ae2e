# SPDX-License-Identifier: Apache-2.0
# Without its run.json a recording still opens.
cuwhy run --gpu sim:tiny --out o gpu grid 1 2>/dev/null
rm o/run.json
cuwhy explain --json o > json
status=$?
grep -o '"cause":"[a-z-]*"' json | head -1
exit $status
