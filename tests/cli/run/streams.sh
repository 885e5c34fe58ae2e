# SPDX-License-Identifier: Apache-2.0
# stdin, stdout and stderr are the program's.
echo in | cuwhy run sh -c 'cat; echo err >&2'
