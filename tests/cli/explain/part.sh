# SPDX-License-Identifier: Apache-2.0
# One part by itself.
cuwhy run --gpu sim:tiny --out o gpu grid 1 2>/dev/null
cuwhy explain --json o/*.cwr > json
status=$?
grep -o '"cause":"[a-z-]*"' json | head -1
exit $status
