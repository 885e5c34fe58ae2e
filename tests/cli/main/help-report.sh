# SPDX-License-Identifier: Apache-2.0
# What report can do.
cuwhy report -h
