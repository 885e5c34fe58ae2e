# SPDX-License-Identifier: Apache-2.0
# A path that is not there.
cuwhy explain ./nothing
