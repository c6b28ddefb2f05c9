"""A step with two branches, for a plan on two streams: eager, or compiled by torchair with the pass that
`acltape emit --as torchair` wrote.

    planned_streams.py                  eager, on one stream: what is recorded
    planned_streams.py PASS.py BACKEND  compiled with the plan, by torchair or npugraph_ex

Prints the results.
"""
import importlib.util
import sys

import torch
import torch_npu  # noqa: F401  (registers the device)


def step(a, b):
    left = torch.mm(a, b)
    left = torch.mm(left, b)
    right = torch.abs(a)
    right = torch.sub(right, b)
    return torch.add(left, right)


def load(path):
    spec = importlib.util.spec_from_file_location("planned", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiled(apply_plan, backend):
    import torchair
    if backend == "npugraph_ex":
        return torch.compile(step, backend="npugraph_ex",
                             options={"post_grad_custom_pre_pass": apply_plan})
    config = torchair.CompilerConfig()
    config.mode = "reduce-overhead"
    config.post_grad_custom_pre_pass = apply_plan
    return torch.compile(step, backend=torchair.get_npu_backend(compiler_config=config))


def main():
    torch.manual_seed(0)
    inputs = [torch.randn(32, 32), torch.randn(32, 32)]
    run = step
    if len(sys.argv) > 1:
        run = compiled(load(sys.argv[1]).apply_plan, sys.argv[2])
    for _ in range(4):
        result = run(*(x.npu() for x in inputs))
        print(f"{result.sum().item():.6f} {result.abs().max().item():.6f}")


with torch.no_grad():
    main()
