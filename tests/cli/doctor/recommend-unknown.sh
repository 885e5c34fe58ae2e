# SPDX-License-Identifier: Apache-2.0
# A GPU that is in no table; and options that belong together.
cuwhy doctor --recommend --gpu 'Zeus 9000'
cuwhy doctor --driver 570
cuwhy doctor --recommend --gpu T4 --os mac
cuwhy doctor --recommend --gpu T4 --driver new
cuwhy doctor --recommend --gpu T4 --pid 1
