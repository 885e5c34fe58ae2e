# SPDX-License-Identifier: Apache-2.0
# The recording stores neither the program's files nor its environment: it must be given.
cuwhy explain --try out/
