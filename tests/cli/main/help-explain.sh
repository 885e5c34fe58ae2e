# SPDX-License-Identifier: Apache-2.0
# What explain can do.
cuwhy explain -h
