# SPDX-License-Identifier: Apache-2.0
# Half a recording: a page that says so.
cuwhy run --gpu sim:tiny --out o gpu grid 1 2>/dev/null
for f in o/*.cwr; do truncate -s 200000 "$f"; done
cuwhy report -o page.html o >/dev/null && grep -c "is cut short" page.html
