#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Ray from PyPI, in a folder of its own: tasks and an actor, whose workers are started by cuwhy (py_executable); rank 2 faults.
set -eu
. "$(dirname "$0")/common.sh"
tools=${CUWHY_TOOLS:-$HOME/.cache/cuwhy/tools/ray}
if [ ! -d "$tools/ray" ]; then
	"$python" -m pip install -q --target "$tools" ray || { echo "skip - ray.sh: ray cannot be installed"; exit 77; }
fi
export PYTHONPATH="$tools" RAY_DISABLE_DOCKER_CPU_WARNING=1 RAY_USAGE_STATS_ENABLED=0
timeout 200 "$python" "$root/tests/launchers/ray_job.py" "$cuwhy" "$work/job" >"$work/log" 2>&1 || true
for try in $(seq 40); do	# workers end after the program
	grep -ql '"state": *"running"' "$work"/job/job-ray/attempt-0/rank-2.*.json 2>/dev/null || break
	sleep 0.5
done
check_first "$work/job" 2 failed illegal-access || { tail -20 "$work/log"; exit 1; }
