# SPDX-License-Identifier: Apache-2.0
# With --json the trouble with the recording is in the object: stderr stays one line.
cuwhy run --json --gpu sim:tiny --out /dev/null/here gpu grid 5 2> err
status=$?
wc -l < err
grep -o '"warning":"[^"]*"' err
exit $status
