# SPDX-License-Identifier: Apache-2.0
# No home: the same.
unset HOME
cuwhy run --gpu sim:tiny gpu grid 5 2> err
status=$?
grep -A1 '^cuwhy: the recording' err
exit $status
