# SPDX-License-Identifier: Apache-2.0
cuwhy fit --steps some -- python3 train.py
