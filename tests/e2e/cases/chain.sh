# SPDX-License-Identifier: Apache-2.0
# Shells and env between cuwhy and the program that fails.
# expect: cause=launch-config-empty-input exit=1
# uses: helpers/empty.py
here=$(dirname "$0")
env LEVEL=1 sh -c 'exec sh -c "\"\$0\" \"\$1\"" "$0" "$1"' "$PYTHON" "$here/helpers/empty.py"
