# SPDX-License-Identifier: Apache-2.0
# What --at takes.
cuwhy memory --at noon "$BUILD/../tests/fuzz/corpus/snapshot/capacity"
