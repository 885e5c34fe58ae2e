# SPDX-License-Identifier: Apache-2.0
# A log for an issue tracker: as a file and through a pipe, without its secrets. A page is not made of it.
cat >train.log <<'L'
PyTorch version: 2.6.0+cu124
Traceback (most recent call last):
  File "/home/user/train.py", line 41, in main
    login(token="hf_AbCdEfGhIjKlMnOp1qRsTuVwXyZ"); logits = model(x)
RuntimeError: CUDA error: no kernel image is available for execution on the device
L
cuwhy report --markdown train.log | sed '/^| cuwhy /d'
echo "$?"
cat train.log | cuwhy report --markdown - | grep -c "hf_AbC\|arch-not-in-wheel |"
cuwhy report --markdown -o issue.md train.log && grep -c 'details' issue.md
echo "all is well" >fine.log
cuwhy report --markdown fine.log | sed "/^| cuwhy /d"
cuwhy report train.log
head -c 4096 /dev/zero >zeros
cuwhy report --markdown zeros
