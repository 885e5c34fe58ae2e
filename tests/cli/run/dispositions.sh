# SPDX-License-Identifier: Apache-2.0
# The program gets the signal settings and limits that cuwhy was given.
show='grep -E "Sig(Blk|Ign|Cgt)" /proc/self/status; ulimit -n; ls /proc/self/fd | wc -l'
sh -c "$show" > a
cuwhy run sh -c "$show" > b
diff a b && echo same
