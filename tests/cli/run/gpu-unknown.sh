# SPDX-License-Identifier: Apache-2.0
# --gpu knows one kind of GPU.
cuwhy run --gpu real echo ran
