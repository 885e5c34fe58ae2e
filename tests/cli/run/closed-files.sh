# SPDX-License-Identifier: Apache-2.0
# Standard files that are closed stay closed, and cuwhy writes into no other file.
show='open=0; for n in 0 2; do [ -e /proc/$$/fd/$n ] && open=1; done; echo $open > fds; gpu grid 1'
cuwhy run --gpu sim:tiny --out o sh -c "$show" <&- >&- 2>&-
status=$?
cat fds
cuwhy explain --json o | grep -o '"cause":"[a-z-]*"' | head -1
exit $status
