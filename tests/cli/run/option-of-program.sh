# SPDX-License-Identifier: Apache-2.0
# Options behind the program are the program's.
cuwhy run echo --json --nonsense -h
