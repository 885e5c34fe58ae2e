# SPDX-License-Identifier: Apache-2.0
# A program that uses no GPU has nothing to play back.
cuwhy fit --gpu rtx4090 --json -- true
