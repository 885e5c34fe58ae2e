# SPDX-License-Identifier: Apache-2.0
# A full disk: the program runs, the verdict comes, the trouble is told.
mkdir small
unshare -rm sh -c 'mount -t tmpfs -o size=16k none small' 2>/dev/null || {
	echo "no private mounts here"
	exit 77
}
unshare -rm sh -c '
mount -t tmpfs -o size=16k none small
cuwhy run --gpu sim:tiny --out small/o gpu grid 5 2> err
status=$?
grep "^cuwhy: the recording" err | sed "s#/o/.*cwr#/o/N.cwr#"
exit $status'
