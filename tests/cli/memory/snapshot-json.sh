# SPDX-License-Identifier: Apache-2.0
# One JSON object, by function at the peak.
cuwhy memory --json --by function --at peak "$BUILD/../tests/fuzz/corpus/snapshot/protocol-0"
