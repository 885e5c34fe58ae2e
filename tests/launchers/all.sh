#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All launchers: a script that ends with 77 was skipped.
set -u
cd "$(dirname "$0")" || exit 2
failed=0
for script in ./mpirun.sh ./slurm.sh ./kubernetes.sh ./ray.sh ./torchrun.sh ./nodes.sh "./flight.py ../../build/cuwhy"; do
	echo "# $script"
	$script
	status=$?
	[ $status = 0 ] || [ $status = 77 ] || failed=1
done
exit $failed
