# SPDX-License-Identifier: Apache-2.0
# A process that outlives the program does not keep cuwhy.
start=$(date +%s%N)
cuwhy run --gpu sim:tiny gpu daemon 4 2>/dev/null
status=$?
end=$(date +%s%N)
[ $(((end - start) / 1000000)) -lt 900 ] && echo soon
exit $status
