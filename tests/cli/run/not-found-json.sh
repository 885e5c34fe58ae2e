# SPDX-License-Identifier: Apache-2.0
# The same as JSON.
cuwhy run --json no-such-program
