# SPDX-License-Identifier: Apache-2.0
# A program that fails for another reason in CUDA: the whole answer is shown, and no recording that is gone by then.
cuwhy fit --gpu rtx4090 -- gpu grid 1 2>&1 >/dev/null | sed '/^cuwhy: ran on/d'
