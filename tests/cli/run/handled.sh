# SPDX-License-Identifier: Apache-2.0
# A failure that the program survived: one line, no recording.
cuwhy run --gpu sim:tiny gpu grid 0
echo "status $?"
find "$T" -mindepth 1 -type f
