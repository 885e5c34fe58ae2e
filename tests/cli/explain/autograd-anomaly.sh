# SPDX-License-Identifier: Apache-2.0
# The forward line that anomaly mode prints is where the search begins, not where the program failed.
cat > train.log <<'END'
/opt/venv/lib/python3.11/site-packages/torch/autograd/graph.py:869: UserWarning: Error detected in SigmoidBackward0. Traceback of forward call that caused the error:
  File "/home/user/seg/train.py", line 61, in main
    out = model(images)
  File "/home/user/seg/model.py", line 34, in forward
    gate = torch.sigmoid(self.gate(x))
  File "/opt/venv/lib/python3.11/site-packages/torch/nn/functional.py", line 2000, in sigmoid
    return input.sigmoid()
 (Triggered internally at /pytorch/torch/csrc/autograd/python_anomaly_mode.cpp:122.)
  return Variable._execution_engine.run_backward(  # Calls into the C++ engine to run the backward pass
Traceback (most recent call last):
  File "/home/user/seg/train.py", line 64, in main
    loss.backward()
RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: [torch.cuda.FloatTensor [4, 32]], which is output 0 of SigmoidBackward0, is at version 1; expected version 0 instead. Hint: the backtrace further above shows the operation that failed to compute its gradient.
END
cuwhy explain train.log | grep -E 'WHERE|is that of|find the change|set_detect'
