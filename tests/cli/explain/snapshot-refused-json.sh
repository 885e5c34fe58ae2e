# SPDX-License-Identifier: Apache-2.0
# The same as JSON.
printf '\200\002cposix\nsystem\n(X\004\000\000\000true\205R.' > evil.pickle
cuwhy explain --json evil.pickle
