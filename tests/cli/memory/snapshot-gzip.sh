# SPDX-License-Identifier: Apache-2.0
# A compressed snapshot is read as it is.
gzip -c "$BUILD/../tests/fuzz/corpus/snapshot/shape-2.0" > s.gz
cuwhy memory s.gz
