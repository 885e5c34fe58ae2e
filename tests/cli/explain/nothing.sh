# SPDX-License-Identifier: Apache-2.0
# No recording yet.
cuwhy explain
