# SPDX-License-Identifier: Apache-2.0
# A message alone tells how much is live, not whether it piled up: never certain.
cat >log.txt <<'END'
Traceback (most recent call last):
  File "grow.py", line 6, in <module>
    kept.append(torch.empty(1 << 30, device="cuda"))
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 139.80 GiB of which 3.30 GiB is free. Including non-PyTorch memory, this process has 136.49 GiB memory in use. Of the allocated memory 136.00 GiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated.
END
cuwhy explain --json log.txt | grep -o '"cause":"oom-[a-z]*","certainty":"[a-z]*"'
