# SPDX-License-Identifier: Apache-2.0
# Two snapshots: which lines hold more, and what is new.
cuwhy memory --max-growth 1MiB "$BUILD/../tests/fuzz/corpus/snapshot/fragmentation" "$BUILD/../tests/fuzz/corpus/snapshot/growth"
