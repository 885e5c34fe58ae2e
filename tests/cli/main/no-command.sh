# SPDX-License-Identifier: Apache-2.0
# Without a command: usage on stderr, the same as the help.
cuwhy 2>usage
status=$?
cuwhy --help | cmp - usage
exit $status
