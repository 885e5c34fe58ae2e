# SPDX-License-Identifier: Apache-2.0
# What doctor can do.
cuwhy doctor -h
