# SPDX-License-Identifier: Apache-2.0
# run without a program is a usage error.
cuwhy run
