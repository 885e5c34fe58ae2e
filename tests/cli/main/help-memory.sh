# SPDX-License-Identifier: Apache-2.0
# What memory can do.
cuwhy memory -h
