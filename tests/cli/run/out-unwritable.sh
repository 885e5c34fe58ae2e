# SPDX-License-Identifier: Apache-2.0
# A folder that cannot be made: the program runs, the verdict comes, the trouble is told.
cuwhy run --gpu sim:tiny --out /dev/null/here gpu grid 5 2> err
status=$?
grep -c 'WHERE\|WHAT\|WHY' err | sed 's/[1-9]/some/'
grep '^cuwhy: the recording' err
exit $status
