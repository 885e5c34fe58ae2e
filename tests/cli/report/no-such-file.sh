# SPDX-License-Identifier: Apache-2.0
# Nothing there.
cuwhy report nowhere
