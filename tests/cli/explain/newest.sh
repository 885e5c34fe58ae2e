# SPDX-License-Identifier: Apache-2.0
# Without an argument: the newest recording.
cuwhy run --gpu sim:tiny gpu ordinal 1 2>/dev/null
# recordings are named after the second they begin in
second=$(date +%s)
while [ "$(date +%s)" = "$second" ]; do sleep 0.05; done
cuwhy run --gpu sim:tiny gpu grid 1 2>/dev/null
cuwhy explain --json > json
status=$?
grep -o '"cause":"[a-z-]*"' json | head -1
exit $status
