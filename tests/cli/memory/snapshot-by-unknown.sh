# SPDX-License-Identifier: Apache-2.0
# What --by takes.
cuwhy memory --by color "$BUILD/../tests/fuzz/corpus/snapshot/capacity"
