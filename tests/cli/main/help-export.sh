# SPDX-License-Identifier: Apache-2.0
# What export can do.
cuwhy export -h
