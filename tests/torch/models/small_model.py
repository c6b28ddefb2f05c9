#!/usr/bin/env python3
"""Trains one small random model of the package transformers and lets it generate.

    small_model.py MODEL [--device cpu|npu] [--steps N] [--generate TOKENS] [--optimizer NAME]
    small_model.py --list

Prints the loss of each step, with all its digits, the norm of the gradients, and the tokens. The
program knows nothing of acltape.
"""
import argparse
import os
import sys
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
if "npu" not in sys.argv:
    # Neither torch nor transformers shall import an adapter that happens to be installed.
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    sys.modules["torch_npu"] = None

from model_table import MODELS, build  # noqa: E402

OPTIMIZERS = ("SGD", "AdamW", "fused AdamW")


def optimizer(torch, name, parameters):
    if name == "SGD":
        return torch.optim.SGD(parameters, lr=0.02)
    return torch.optim.AdamW(parameters, lr=0.002, fused=name == "fused AdamW")


def moved(values, device):
    return {name: value.to(device) if hasattr(value, "to") else value for name, value in values.items()}


def train(torch, model, inputs, steps, update):
    for step in range(steps):
        with torch.profiler.record_function("training step"):
            update.zero_grad()
            loss = model(**inputs).loss
            loss.backward()
            squares = [p.grad.square().sum() for p in model.parameters() if p.grad is not None]
            norm = torch.stack(squares).sum().sqrt()
            update.step()
        print(f"step {step}: loss {loss.item():.9g}, gradients {norm.item():.9g}")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", choices=list(MODELS))
    parser.add_argument("--list", action="store_true", help="print the models and their families")
    parser.add_argument("--device", choices=("cpu", "npu"), default="cpu")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--generate", type=int, default=4, help="new tokens, of models that generate")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="AdamW")
    options = parser.parse_args(arguments)
    if options.list:
        for name, row in MODELS.items():
            print(f"{name}\t{row.family}")
        return 0
    if options.model is None:
        parser.error("a model or --list")

    import torch
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(11)
    model, inputs, labels = build(options.model)
    model.to(options.device).train()
    inputs, labels = moved(inputs, options.device), moved(labels, options.device)
    if options.steps:
        train(torch, model, {**inputs, **labels}, options.steps,
              optimizer(torch, options.optimizer, model.parameters()))
    if options.generate and MODELS[options.model].generates:
        model.eval()
        tokens = model.generate(**inputs, max_new_tokens=options.generate, min_new_tokens=options.generate,
                                do_sample=False, use_cache=True)
        print("tokens", tokens.tolist())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
