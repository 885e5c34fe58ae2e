# SPDX-License-Identifier: Apache-2.0
# The same for the usual place.
export CUWHY_DIR=/proc/nothing
cuwhy run --gpu sim:tiny gpu grid 5 2> err
status=$?
grep '^cuwhy: the recording' err
exit $status
