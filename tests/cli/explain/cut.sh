# SPDX-License-Identifier: Apache-2.0
# A recording cut short opens as far as it goes.
cuwhy run --gpu sim:tiny --out o gpu grid 1 2>/dev/null
for f in o/*.cwr; do truncate -s 12000 "$f"; done
cuwhy explain --json o > json
status=$?
grep -c '"cause"' json
[ $status -le 1 ]
