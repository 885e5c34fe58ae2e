# SPDX-License-Identifier: Apache-2.0
"""vllm_generate.py CONFIG TENSOR_PARALLEL [eager]: a model with dummy weights from a configuration alone, and four tokens."""
import json
import os
import sys
import tempfile

from vllm import LLM, SamplingParams


def main():
    folder = tempfile.mkdtemp(prefix="model-")
    with open(os.path.join(folder, "config.json"), "w", encoding="ascii") as out:
        json.dump(json.loads(sys.argv[1]), out)
    llm = LLM(model=folder, load_format="dummy", skip_tokenizer_init=True, max_model_len=4096, enforce_eager="eager" in sys.argv,
              tensor_parallel_size=int(sys.argv[2]))
    answer = llm.generate({"prompt_token_ids": [1, 2, 3]}, SamplingParams(max_tokens=4, detokenize=False))
    print("generated %d tokens" % len(answer[0].outputs[0].token_ids))


if __name__ == "__main__":
    main()
