# SPDX-License-Identifier: Apache-2.0
# The same with a path.
cuwhy run ./no-such-program
