# SPDX-License-Identifier: Apache-2.0
# The exit status is the program's.
cuwhy run sh -c 'exit 42'
