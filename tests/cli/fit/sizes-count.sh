# SPDX-License-Identifier: Apache-2.0
# One size for each recording.
mkdir out8
cuwhy fit --sizes 8,16 out8
