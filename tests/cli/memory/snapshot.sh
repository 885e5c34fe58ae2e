# SPDX-License-Identifier: Apache-2.0
# Totals, lines, who pins free memory, and the chart.
cuwhy memory "$BUILD/../tests/fuzz/corpus/snapshot/fragmentation"
