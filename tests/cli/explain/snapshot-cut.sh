# SPDX-License-Identifier: Apache-2.0
# A snapshot that ends early.
cuwhy explain "$BUILD/../tests/fuzz/corpus/snapshot/cut"
