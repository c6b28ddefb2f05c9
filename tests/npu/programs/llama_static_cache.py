"""A small random Llama that generates with a static cache, its forward compiled with npugraph_ex.

The package transformers makes the length of a static cache on the host and copies it to the device inside of
what is captured, which a capture refuses. Prints what generate() failed with, or its tokens; --eager
generates without compiling.
"""
import argparse

import torch
import torch_npu  # noqa: F401  (registers the device)
from transformers import LlamaConfig, LlamaForCausalLM


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eager", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                         num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
                         attn_implementation="eager", bos_token_id=1, eos_token_id=None, pad_token_id=0)
    model = LlamaForCausalLM(config).eval().to("npu")
    if not args.eager:
        model.forward = torch.compile(model.forward, backend="npugraph_ex", dynamic=False)
    words = torch.randint(0, 64, (1, 7)).to("npu")
    try:
        tokens = model.generate(words, max_new_tokens=6, do_sample=False,
                                cache_implementation="static", disable_compile=True)
    except Exception as error:
        print("failed:", type(error).__name__, str(error).splitlines()[0])
        return
    print(tokens.tolist())


if __name__ == "__main__":
    main()
