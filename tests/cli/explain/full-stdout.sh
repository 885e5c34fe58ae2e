# SPDX-License-Identifier: Apache-2.0
# An answer that cannot be written is a failure.
cuwhy explain --list > /dev/full
