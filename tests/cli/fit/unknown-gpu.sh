# SPDX-License-Identifier: Apache-2.0
# The nearest name is offered.
cuwhy fit --gpu a100-40 -- python3 train.py
