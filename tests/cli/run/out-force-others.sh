# SPDX-License-Identifier: Apache-2.0
# --force leaves alone what is not a recording.
cuwhy run --out o true
echo mine > o/file
cuwhy run --out o --force echo ran
status=$?
cat o/file
exit $status
