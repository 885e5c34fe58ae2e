# SPDX-License-Identifier: Apache-2.0
# Neither a program nor a recording.
cuwhy fit --gpu rtx4090
