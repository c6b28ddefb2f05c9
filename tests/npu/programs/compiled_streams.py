"""mm(a, b) on one stream, abs and sub on another, then add: compiled by torchair (reduce-overhead mode)
with npu_stream_switch, for batches of several sizes.

    compiled_streams.py [--sizes 4,6,4] [--gears 2,4,8] [--missing-wait] [--update]

Without --gears there is a graph for each size. With --gears torch_npu's NPUShapeHandling pads a batch to
the next of these sizes and cuts the result, and dim gears tell torchair that no others come.
--missing-wait adds without waiting for the product. --update adds the result into a tensor that the
program gives anew in each step, so that a graph writes where another batch's lies. Prints the sum of each
step.
"""
import argparse

import torch
import torch_npu  # noqa: F401  (registers the device)
import torchair
from torch_npu.utils._dynamo import NPUShapeHandling

WIDTH = 32


def make_step(missing_wait, update):
    product_done = torchair.ops.npu_create_tagged_event("product done")

    def step(a, b, into):
        with torchair.scope.npu_stream_switch("side"):
            product = torch.mm(a, b)
            torchair.ops.npu_tagged_event_record(product_done)
        difference = torch.sub(torch.abs(a), 1.5)
        if not missing_wait:
            torchair.ops.npu_tagged_event_wait(product_done)
        total = torch.add(product, difference)
        if missing_wait:
            torchair.ops.npu_tagged_event_wait(product_done)
        if update:
            into.add_(total)
        return total

    return step


def compiled(step):
    config = torchair.CompilerConfig()
    config.mode = "reduce-overhead"
    # Memory of one stream that another one used cannot be given to the next graph.
    config.debug.aclgraph.disable_mempool_reuse_in_same_fx = True
    return torch.compile(step, backend=torchair.get_npu_backend(compiler_config=config), dynamic=True,
                         fullgraph=True)


def numbers(text):
    return [int(word) for word in text.split(",")]


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=numbers, default=[4, 6, 4])
    parser.add_argument("--gears", type=numbers)
    parser.add_argument("--missing-wait", action="store_true")
    parser.add_argument("--update", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(5)
    b = torch.randn(WIDTH, WIDTH).npu()
    run = compiled(make_step(args.missing_wait, args.update))
    shapes = args.gears and NPUShapeHandling(configs=[
        {"type": "BATCHSIZE", "dimensions": [0], "indices": [0], "gears": args.gears}])
    for place, size in enumerate(args.sizes):
        batch = torch.randn(size, WIDTH).npu()
        padded = batch
        if shapes:
            (padded,), = shapes.transform([batch])
            torchair.inference.set_dim_gears(padded, {0: args.gears})
        into = torch.zeros_like(padded)
        # A result is copied: the next graph takes its memory.
        result = run(padded, b, into)[:size].cpu()
        print(place, f"{result.double().sum().item():.5f} {into[:size].cpu().double().sum().item():.5f}")


main()
