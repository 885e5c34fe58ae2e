# SPDX-License-Identifier: Apache-2.0
# PyTorch 1 gives the list of segments alone.
cuwhy memory "$BUILD/../tests/fuzz/corpus/snapshot/shape-1.13"
