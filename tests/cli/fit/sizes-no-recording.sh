# SPDX-License-Identifier: Apache-2.0
# A program is varied, not compared.
cuwhy fit --sizes 8,16 -- python3 train.py
