#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Slurm from Debian's packages, four nodes on one machine: srun with one task per node, task 2 faults. As root. Debian: slurmctld slurmd
# slurm-client munge.
set -eu
. "$(dirname "$0")/common.sh"
need slurmctld slurmctld
need slurmd slurmd
need srun slurm-client
need munged munge
[ "$(id -u)" = 0 ] || { echo "skip - slurm.sh: needs root, to start the daemons"; exit 77; }
pids=
on_exit() {
	for pid in $pids $(cat "$work"/*.pid 2>/dev/null); do
		kill "$pid" 2>/dev/null || true
	done
	sleep 1
	rm -rf "$work"
}
chmod 755 "$work"
host=$(hostname)
mkdir -p "$work/spool" "$work/munge"

# a munge of our own: the system's is left alone
dd if=/dev/urandom of="$work/munge/key" bs=1024 count=1 2>/dev/null
chmod 700 "$work/munge"
chmod 600 "$work/munge/key"
munged --force --foreground --socket="$work/munge/socket" --key-file="$work/munge/key" --pid-file="$work/munge/pid" --log-file="$work/munge/log" --seed-file="$work/munge/seed" >"$work/munged.out" 2>&1 &
pids="$pids $!"

cat >"$work/slurm.conf" <<CONF
ClusterName=cuwhy
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=26817
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
CredType=cred/munge
StateSaveLocation=$work/spool
SlurmdSpoolDir=$work/spool/%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd-%n.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
ReturnToService=2
MpiDefault=none
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
NodeName=node[1-4] NodeHostname=$host NodeAddr=127.0.0.1 Port=[26821-26824] CPUs=1 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF="$work/slurm.conf"
for try in 1 2 3 4 5 6 7 8 9 10; do
	[ ! -S "$work/munge/socket" ] || break
	sleep 0.5
done
slurmctld -D -f "$SLURM_CONF" >"$work/ctld.out" 2>&1 &
pids="$pids $!"
for n in 1 2 3 4; do
	slurmd -D -N "node$n" -f "$SLURM_CONF" >"$work/slurmd-$n.out" 2>&1 &
	pids="$pids $!"
done
for try in $(seq 40); do
	[ "$(sinfo -h -t idle -o %D 2>/dev/null | head -1)" != 4 ] || break
	sleep 0.5
done
sinfo
timeout 120 srun -N 4 -n 4 --kill-on-bad-exit=0 "$cuwhy" run --gpu sim:h200 --job "$work/job" -- "$python" "$root/tests/launchers/worker.py" "$work" >"$work/log" 2>&1 || true
check_first "$work/job" 2 failed illegal-access || { tail -20 "$work/log" "$work"/slurm*.log; exit 1; }
"$python" - "$work/answer.json" <<'PY'
import json, sys
got = json.load(open(sys.argv[1], encoding="utf-8"))
ok = got["first"][0]["node"].startswith("node") and got["job"].isdigit() and got["world"] == 4
print("%s - Slurm's job %s, %s" % ("ok" if ok else "not ok", got["job"], got["first"][0]["node"]))
sys.exit(0 if ok else 1)
PY
