# SPDX-License-Identifier: Apache-2.0
# The largest batch is a question about one card.
cuwhy fit --vary batch-size=4..64 -- python3 train.py
