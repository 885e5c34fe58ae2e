# SPDX-License-Identifier: Apache-2.0
# Logs of two runs, by their times: their figures are not mixed, both answers are there. What nvidia-smi says may belong to both.
oom() {	# time of the first line, total, free
	printf '%s step 1 loss 2.1\nTraceback (most recent call last):\n  File "train.py", line 7, in <module>\n    y = model(x)\n' "$1"
	printf 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of %s GiB of which %s GiB is free. ' $2 $3
	printf 'Of the allocated memory 13.01 GiB is allocated by PyTorch, and 401.00 MiB is reserved by PyTorch but unallocated.\n'
}
oom '2025-03-04 11:00:02,500' 14.58 1.02 >monday.log
printf '2025-03-05 09:00:00,120 torch 2.6.0+cu124\nTraceback (most recent call last):\n  File "eval.py", line 3, in <module>\n    y = model(x)\n' >tuesday.log
printf 'RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!\n' >>tuesday.log
cuwhy explain monday.log tuesday.log | grep -E '^cuwhy|two runs|another input'
cuwhy explain tuesday.log monday.log --json | grep -oE 'monday.log, was analyzed separately[^"]*|tuesday.log, was analyzed separately[^"]*'
# the same hour: one run
sed 's/2025-03-05 09:00/2025-03-04 11:05/' tuesday.log >same.log
cuwhy explain same.log monday.log | grep -cE 'two runs|another input'
cuwhy explain same.log monday.log | head -n 1
