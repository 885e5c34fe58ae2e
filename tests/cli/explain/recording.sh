# SPDX-License-Identifier: Apache-2.0
# A recording is judged again, with the same result.
cuwhy run --json --gpu sim:tiny --out o gpu grid 1 2> first
cuwhy explain --json o > second
status=$?
for f in first second; do grep -o '"cause":"[a-z-]*"' $f | head -1; done
exit $status
