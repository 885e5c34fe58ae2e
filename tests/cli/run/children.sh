# SPDX-License-Identifier: Apache-2.0
# A failing child counts although its parent ends with 0; the same again is one line.
cuwhy run --gpu sim:tiny gpu twice 0 2> err
echo "status $?"
grep -c '^cuwhy: ' err
grep 'the same way' err | sed 's/[0-9][0-9]*/N/'
