# SPDX-License-Identifier: Apache-2.0
# A process that outlives the program does not keep cuwhy.
cuwhy run --gpu sim:tiny gpu daemon 4 >pid 2>/dev/null
status=$?
read -r pid <pid
kill "$pid" && echo "it still runs"
exit $status
