# SPDX-License-Identifier: Apache-2.0
# SIGTERM to cuwhy alone is passed on, once.
cat > prog <<'P'
n=0
trap 'n=$((n + 1))' TERM
echo ready > ready
for i in 1 2 3 4 5 6; do sleep 0.1; done
echo "$n signals"
P
cuwhy run sh prog &
while [ ! -e ready ]; do sleep 0.02; done
kill -TERM $!
wait $!
