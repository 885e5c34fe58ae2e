# SPDX-License-Identifier: Apache-2.0
# A script whose interpreter is missing: 127, and said so.
printf '#!/no/such/interpreter\n' > script
chmod +x script
cuwhy run ./script
