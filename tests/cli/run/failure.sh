# SPDX-License-Identifier: Apache-2.0
# A failure: the verdict on stderr, a recording, the program's status.
cuwhy run --gpu sim:tiny gpu grid 7
echo "status $?"
ls "$HOME"/.local/state/cuwhy/*/ | sed 's/[0-9][0-9]*/N/g' | grep -v '^/'
