# SPDX-License-Identifier: Apache-2.0
# Help goes to stdout.
cuwhy --help
