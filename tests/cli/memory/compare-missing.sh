# SPDX-License-Identifier: Apache-2.0
# The second file does not exist.
cuwhy memory --json "$T" "$T/none"
