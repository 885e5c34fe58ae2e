# SPDX-License-Identifier: Apache-2.0
# Device 3 of a machine with two.
# expect: cause=device-ordinal-out-of-range certainty=certain,likely exit=1 code=101 api=cuDeviceGet
# gpu: sim:tiny,devices=2
import cudrv


def main(rank):
    cudrv.init(rank)  # <- here


main(3)
