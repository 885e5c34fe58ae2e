# SPDX-License-Identifier: Apache-2.0
# A program that fails for another reason: what it printed last is shown.
cuwhy fit --gpu rtx4090 -- sh -c 'echo no such data; exit 3' 2>&1 >/dev/null | sed '/^cuwhy: ran on/d'

