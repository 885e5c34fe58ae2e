# SPDX-License-Identifier: Apache-2.0
# sed -E -f: of a program of tests/gpu what a cause shows of it, the code without the lines that speak to the tests.
/^# SPDX-License-Identifier:/d
/^# (expect|expect-[a-z]+|needs|uses|args|timeout|skip|gpu|build|wrap):/d
/^# (alone|same-output)$/d
s/^# env: (.*)$/# Run it with \1 in the environment./
s/^# options: (.*)$/# Run it under cuwhy run \1./
s/[ ]*# <- .*$//
s/\t/    /g
