# SPDX-License-Identifier: Apache-2.0
# A damaged part is told, by name.
cuwhy run --gpu sim:tiny --out o gpu grid 1 2>/dev/null
for f in o/*.cwr; do echo garbage > "$f"; done
cuwhy explain o 2> err
status=$?
sed 's/[0-9][0-9]*-1/N-1/' err >&2
exit $status
