#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Open MPI: four ranks, each with its own cuwhy; rank 2 faults. Debian: openmpi-bin.
set -eu
. "$(dirname "$0")/common.sh"
need mpirun openmpi-bin
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpirun --oversubscribe -n 4 "$cuwhy" run --gpu sim:h200 --job "$work/job" -- "$python" "$root/tests/launchers/worker.py" "$work" >"$work/log" 2>&1 || true
check_first "$work/job" 2 failed illegal-access
