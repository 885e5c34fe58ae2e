# SPDX-License-Identifier: Apache-2.0
# --keep leaves a recording of a run that went well.
cuwhy run --keep --gpu sim:tiny gpu ok
echo "status $?"
cuwhy explain | sed 's/cuwhy\/[-0-9]*/cuwhy\/N/'
