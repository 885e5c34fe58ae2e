# SPDX-License-Identifier: Apache-2.0
# The installed layout finds its parts.
mkdir -p p/bin p/lib/cuwhy/sim
cp "$BUILD/cuwhy" p/bin
cp "$BUILD/libcuwhy-rec.so" p/lib/cuwhy
cp "$BUILD/sim/libcuda.so.1" p/lib/cuwhy/sim
ln -s p/bin/cuwhy why
./why run --json --gpu sim:tiny gpu grid 1 2>&1 | grep -o '"cause":"[a-z-]*"' | head -1
