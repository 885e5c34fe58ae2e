#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# torchrun: RANKS ranks (4) with gloo, and on simulated GPUs with the stand-in NCCL; rank 1 raises, is killed, never comes, calls something
# else. Needs the PyTorch of `make check-torch`.
set -eu
. "$(dirname "$0")/common.sh"
need_torch
ranks=${RANKS:-4}
wrong=0

# try MODE BACKEND HOW [WORDS]
try() {
	echo "# torchrun, $ranks ranks, $2: $1"
	devices=$ranks
	[ "$2" != gloo ] || devices=1	# all of them use the first one
	BACKEND=$2 timeout 400 "$cuwhy" run --gpu "sim:h200,devices=$devices" --job "$work/$2-$1" "$python" -m torch.distributed.run --rdzv-backend c10d \
		--rdzv-endpoint localhost:0 --rdzv-id "$2-$1" --nproc-per-node "$ranks" "$root/tests/launchers/train.py" "$1" >"$work/log" 2>&1 || true
	check_first "$work/$2-$1" 1 "$3" "${4:-}" || { wrong=1; tail -30 "$work/log"; }
}

if [ $# -gt 0 ]; then	# one of them: torchrun.sh raises gloo failed
	try "$@"
	exit $wrong
fi
try raises gloo failed "ValueError: bad batch"
try killed gloo killed
try absent nccl absent "never came to call number 12"
try diverges nccl diverged "all_gather of 64 float32 at train.py"
exit $wrong
