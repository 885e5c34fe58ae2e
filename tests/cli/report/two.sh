# SPDX-License-Identifier: Apache-2.0
# One at a time.
cuwhy report a b
