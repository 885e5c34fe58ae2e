# SPDX-License-Identifier: Apache-2.0
# --json answers also when nothing failed.
cuwhy run --json true
