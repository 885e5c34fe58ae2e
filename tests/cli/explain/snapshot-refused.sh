# SPDX-License-Identifier: Apache-2.0
# A pickle that would run code is refused.
printf '\200\002cposix\nsystem\n(X\004\000\000\000true\205R.' > evil.pickle
cuwhy explain evil.pickle
