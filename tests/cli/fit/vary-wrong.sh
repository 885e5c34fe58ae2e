# SPDX-License-Identifier: Apache-2.0
cuwhy fit --gpu rtx4090 --vary batch-size=64 -- python3 train.py
