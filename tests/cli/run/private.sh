# SPDX-License-Identifier: Apache-2.0
# Folders of a recording are 0700, its files 0600, whatever the umask.
umask 0
cuwhy run --gpu sim:tiny --out o gpu grid 1 2>/dev/null
find o -printf '%m %y\n' | sort -u
