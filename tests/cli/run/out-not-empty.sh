# SPDX-License-Identifier: Apache-2.0
# --out does not touch a folder with something in it.
mkdir o
echo mine > o/file
cuwhy run --out o echo ran
status=$?
cat o/file
exit $status
