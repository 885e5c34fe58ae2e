# SPDX-License-Identifier: Apache-2.0
# A memory snapshot is judged by its last oom.
cuwhy explain "$BUILD/../tests/fuzz/corpus/snapshot/growth"
