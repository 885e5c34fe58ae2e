# SPDX-License-Identifier: Apache-2.0
# One needs the open kernel modules, the other the closed ones.
cuwhy doctor --recommend --gpu 'GTX 1080 Ti' --gpu 5090 | head -2
