# SPDX-License-Identifier: Apache-2.0
# The version is one line.
cuwhy --version
