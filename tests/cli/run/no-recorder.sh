# SPDX-License-Identifier: Apache-2.0
# Without its recorder cuwhy does not start the program.
cp "$BUILD/cuwhy" .
./cuwhy run echo ran
