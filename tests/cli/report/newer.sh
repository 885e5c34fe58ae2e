# SPDX-License-Identifier: Apache-2.0
# A recording of a format to come: a page that says so, with what cuwhy run had said; and the status tells.
cuwhy run --gpu sim:tiny --out o gpu grid 1 2>/dev/null
for f in o/*.cwr; do printf "\377" | dd of="$f" bs=1 seek=8 conv=notrunc 2>/dev/null; done
cuwhy report -o page.html o 2>&1 | sed "s/([0-9]* KiB)/(N KiB)/; s/[0-9][0-9]*-1/N-1/"
grep -c "a process could not be read" page.html
grep -c "launch-config-grid-limit" page.html
cuwhy report -o page.html o >/dev/null 2>&1
