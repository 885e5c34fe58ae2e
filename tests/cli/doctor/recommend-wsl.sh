# SPDX-License-Identifier: Apache-2.0
# The driver is that of Windows.
cuwhy doctor --recommend --gpu 3060 --os wsl --driver 581.15 --python 3.12 | head -4
