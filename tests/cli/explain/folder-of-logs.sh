# SPDX-License-Identifier: Apache-2.0
# A folder with one log per rank, as torchrun --log-dir writes it: the rank that failed first leads, whatever its number.
mkdir -p logs/run/attempt_0/0 logs/run/attempt_0/1 logs/run/attempt_0/2 logs/run/attempt_0/10
cd logs/run/attempt_0
failed() {	# time message
	printf '%s step 40 loss 2.1\nTraceback (most recent call last):\n  File "train.py", line 7, in <module>\n    y = model(x)\n%s\n' "$1" "$2"
}
failed '2025-03-04 11:00:09,120' 'RuntimeError: CUDA error: an illegal memory access was encountered' >0/stderr.log
failed '2025-03-04 11:00:02,500' 'RuntimeError: CUDA error: device-side assert triggered' >2/stderr.log
failed '2025-03-04 11:00:05,001' 'RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x768 and 512x10)' >10/stderr.log
: >1/stderr.log
cd ../../..
cuwhy explain logs | sed -n '1,6p'
cuwhy explain --json logs/ | grep -o '"rank":[0-9]*'
