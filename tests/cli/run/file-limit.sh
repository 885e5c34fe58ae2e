# SPDX-License-Identifier: Apache-2.0
# A limit on the size of files is, for cuwhy, like a full disk.
ulimit -S -f 8
cuwhy run --gpu sim:tiny --out o sh -c 'ulimit -S -f unlimited; exec gpu grid 5' 2> err
status=$?
grep "^cuwhy: the recording" err | sed "s#o/.*cwr#o/N.cwr#"
exit $status
