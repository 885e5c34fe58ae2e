# SPDX-License-Identifier: Apache-2.0
# A failure of cuwhy itself, as JSON.
cuwhy report --json nowhere
