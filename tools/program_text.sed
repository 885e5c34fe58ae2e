# SPDX-License-Identifier: Apache-2.0
# sed -E -f: the part of a tests/gpu program that a cause shows, the code without the lines meant for the tests.
/^# SPDX-License-Identifier:/d
/^# (expect|expect-[a-z]+|needs|uses|args|timeout|skip|gpu|build|wrap):/d
/^# (alone|same-output)$/d
s/^# env: (.*)$/# Run it with \1 in the environment./
s/^# options: (.*)$/# Run it under cuwhy run \1./
s/[ ]*# <- .*$//
s/\t/    /g
