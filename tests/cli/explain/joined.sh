# SPDX-License-Identifier: Apache-2.0
# Several files are judged together: the log alone does not tell whose the memory is, nvidia-smi does.
echo 'RuntimeError: CUDA error: out of memory' > train.log
echo '| 33%   41C    P8    21W / 250W |  10811MiB / 11264MiB |      0%      Default |' > smi.txt
cuwhy explain --json train.log smi.txt | grep -o '"cause":"[a-z-]*","certainty":"[a-z]*"' | head -n 1
cuwhy run --gpu sim:tiny --out o gpu grid 1 2>/dev/null
cuwhy explain train.log o --json | grep -o '"cause":"[a-z-]*","certainty":"[a-z]*"' | head -n 1
