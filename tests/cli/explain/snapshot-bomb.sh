# SPDX-License-Identifier: Apache-2.0
# A compressed file that grows without end is given up.
{ printf '\200\004X\377\377\377\177'; head -c 150000000 /dev/zero; } | gzip -9 > bomb.gz
cuwhy explain bomb.gz
