# SPDX-License-Identifier: Apache-2.0
# A mistyped cause offers the nearest one.
cuwhy explain oom-capacty
