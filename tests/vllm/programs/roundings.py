#!/usr/bin/env python3
"""How far roundings alone move the log-probabilities of a model whose products are quantised.

The same integers and scales are computed with by transformers in float16 and in float32, without vLLM. A rounding may
move an input by a whole step of its integer, so that these two lie much farther apart than without quantisation. The
bounds of w8a8 and w8a8-dynamic (features.py) are twice what this prints.
"""
import argparse
import copy
import tempfile

import models
import quantised
import torch


def distances(half, wide, seed):
    """Of the likeliest tokens after three random prompts, at twelve places each."""
    torch.manual_seed(seed)
    ids = torch.randint(3, 500, (3, 20))
    with torch.no_grad():
        one, other = (model(ids).logits.float().log_softmax(-1)[:, -12:] for model in (half, wide))
    chosen = one.argmax(-1, keepdim=True)
    return (one.gather(-1, chosen) - other.gather(-1, chosen)).abs()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--model", choices=["llama", "qwen2", "qwen3"], default="qwen2")
    parser.add_argument("--scheme", choices=list(quantised.SCALES), default="W8A8")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        half = models.write_model(options.model, "float16", folder)
        quantised.quantise(options.scheme)(half, folder)
        wide = copy.deepcopy(half).float()
        for model in (half, wide):
            quantised.quantise_reference(model, folder)
    each = [distances(half, wide, seed) for seed in range(10, 20)]
    print(f"farthest {max(float(one.max()) for one in each):.3f}, "
          f"largest mean {max(float(one.mean()) for one in each):.3f}")


if __name__ == "__main__":
    main()
