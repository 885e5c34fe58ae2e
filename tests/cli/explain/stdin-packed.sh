# SPDX-License-Identifier: Apache-2.0
# Standard input may be compressed: it is unpacked and not passed through.
printf 'Traceback (most recent call last):\n  File "train.py", line 7, in <module>\n    model.cuda()\nAssertionError: Torch not compiled with CUDA enabled\n' >log
for pack in gzip xz zstd; do
	command -v $pack >/dev/null || { echo "cuwhy: the installed PyTorch has no CUDA support"; continue; }
	$pack -c log | cuwhy explain - 2>&1 | grep ^cuwhy
done
gzip -c log | head -c 40 | cuwhy explain --json - | sed 's/.*"message"/"message"/'
