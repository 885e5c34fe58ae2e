# SPDX-License-Identifier: Apache-2.0
# SIGTERM to cuwhy alone is passed on, once.
cat > prog <<'P'
n=0
trap 'n=$((n + 1))' TERM
echo ready > ready
while [ "$n" = 0 ]; do sleep 0.05; done
for i in 1 2 3; do sleep 0.1; done	# for a second one
echo "$n signals"
P
cuwhy run sh prog &
while [ ! -e ready ]; do sleep 0.02; done
kill -TERM $!
wait $!
