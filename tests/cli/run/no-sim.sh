# SPDX-License-Identifier: Apache-2.0
# Without the simulated GPU neither.
cp "$BUILD/cuwhy" "$BUILD/libcuwhy-rec.so" .
./cuwhy run --gpu sim echo ran
