# SPDX-License-Identifier: Apache-2.0
# A program that does not exist: 127.
cuwhy run no-such-program
