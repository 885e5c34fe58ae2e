# SPDX-License-Identifier: Apache-2.0
# By pool, at the end.
cuwhy memory --by pool "$BUILD/../tests/fuzz/corpus/snapshot/device-1"
