# SPDX-License-Identifier: Apache-2.0
# An option where a command belongs.
cuwhy --jsn
