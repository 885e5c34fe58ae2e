#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# torchrun on two nodes, which are network namespaces of this machine: two ranks on each, gloo over a cable between them; rank 3 raises. As
# root; needs iproute2 and the PyTorch of `make check-torch`.
set -eu
. "$(dirname "$0")/common.sh"
need ip iproute2
[ "$(id -u)" = 0 ] || { echo "skip - nodes.sh: needs root, to make network namespaces"; exit 77; }
need_torch
a=cuwhy-a-$$ b=cuwhy-b-$$
on_exit() {
	ip netns del "$a" 2>/dev/null || true
	ip netns del "$b" 2>/dev/null || true
	rm -rf "$work"
}
ip netns add "$a" 2>"$work/why" || { echo "skip - nodes.sh: no network namespaces here: $(cat "$work/why")"; exit 77; }
ip netns add "$b"
ip -n "$a" link add cable type veth peer name cable netns "$b" 2>"$work/why" || { echo "skip - nodes.sh: no cable between network namespaces: $(cat "$work/why")"; exit 77; }
n=1
for node in "$a" "$b"; do
	ip -n "$node" addr add "10.77.0.$n/24" dev cable
	ip -n "$node" link set cable up
	ip -n "$node" link set lo up
	n=$((n + 1))
done

# node NUMBER NAMESPACE
node() {
	ip netns exec "$2" env CUWHY_NODE="node$1" CULPRIT=3 GLOO_SOCKET_IFNAME=cable timeout 300 "$cuwhy" run --gpu sim:h200 --job "$work/job" "$python" -m torch.distributed.run \
		--nnodes 2 --node-rank "$1" --nproc-per-node 2 --rdzv-id two-nodes --master-addr 10.77.0.1 --master-port 29511 "$root/tests/launchers/train.py" raises >"$work/log$1" 2>&1
}
node 1 "$b" &
other=$!
node 0 "$a" || true
wait $other || true
check_first "$work/job" 3 failed "ValueError: bad batch" || { tail -20 "$work/log0" "$work/log1"; exit 1; }
grep -q "rank 3 on node1" "$work/log0" && echo "ok - the node of rank 0 told it at its end"
