"""A step with mistakes that a captured graph does not forgive, planted one by one.

  six_mistakes.py [MISTAKE...]             eager steps: what would go wrong if they were captured
  six_mistakes.py --captured [MISTAKE...]  each mistake in a capture of its own

MISTAKE is a name of MISTAKES below. Without any the step is right. The statement at fault of each
is the line that ends with "# mistake: NAME". Prints the sum of each step, or of each replay, and what
a capture failed with.
"""
import argparse

import torch
import torch_npu  # noqa: F401  (registers the device)

MISTAKES = ("host_read", "sync_in_capture", "unjoined_stream", "varying_scalar", "reused_buffer",
            "missing_wait")
WIDTH = 64


class Step:
    """One step on static tensors. Each method is a part of it that may hold one mistake."""

    def __init__(self, planted):
        self.planted = planted
        torch.manual_seed(5)
        self.x = torch.randn(WIDTH, WIDTH, device="npu")
        self.weight = torch.randn(WIDTH, WIDTH, device="npu") / WIDTH
        self.scale = torch.ones((), device="npu")
        self.side = torch.npu.Stream()
        self.lonely = torch.npu.Stream()

    def host_read(self, y):
        if "host_read" in self.planted:
            if y.sum().item() > 1e6:  # mistake: host_read
                y = y / 2
            return y
        return torch.where(y.sum() > 1e6, y / 2, y)

    def sync_in_capture(self, y):
        y = torch.tanh(y)
        if "sync_in_capture" in self.planted:
            torch.npu.current_stream().synchronize()  # mistake: sync_in_capture
        return y

    def varying_scalar(self, y, place):
        if "varying_scalar" in self.planted:
            return torch.mul(y, 1.0 / (place + 1))  # mistake: varying_scalar
        return torch.mul(y, self.scale)

    def unjoined_stream(self, y):
        self.lonely.wait_stream(torch.npu.current_stream())
        with torch.npu.stream(self.lonely):
            self.norm = torch.abs(y)  # mistake: unjoined_stream
        if "unjoined_stream" not in self.planted:
            torch.npu.current_stream().wait_stream(self.lonely)
        return torch.neg(y)

    def reused_buffer(self, y):
        main = torch.npu.current_stream()
        lent = torch.exp(y)
        self.side.wait_stream(main)
        with torch.npu.stream(self.side):
            kept = torch.mm(lent, self.weight)
        if "reused_buffer" in self.planted:
            del lent  # no record_stream: its memory is free for this stream's next tensor
        filled = torch.ones_like(y)  # mistake: reused_buffer
        main.wait_stream(self.side)
        return torch.add(kept, filled)

    def missing_wait(self, y):
        main = torch.npu.current_stream()
        self.side.wait_stream(main)
        with torch.npu.stream(self.side):
            product = torch.mm(y, self.weight)
        difference = torch.sub(y, self.weight)
        if "missing_wait" not in self.planted:
            main.wait_stream(self.side)
        total = torch.add(product, difference)  # mistake: missing_wait
        main.wait_stream(self.side)  # so that the stream is joined
        return total

    def __call__(self, place):
        y = torch.relu(self.x)
        y = self.varying_scalar(y, place)
        y = self.unjoined_stream(y)
        y = self.reused_buffer(y)
        y = self.missing_wait(y)
        y = self.sync_in_capture(y)
        return self.host_read(y)


class Inputs:
    """The inputs of all steps, on the device: what a step reads is copied to where it reads it."""

    def __init__(self, steps):
        places = torch.arange(float(steps)).npu()
        self.x = places.view(-1, 1, 1).expand(-1, WIDTH, WIDTH).contiguous()
        self.scale = 1.0 / (places + 1)

    def feed(self, step, place):
        step.x.copy_(self.x[place])
        step.scale.copy_(self.scale[place])


def tell(name, place, result):
    print(name, place, f"{result.double().sum().item():.4f}")


def eager(planted, steps):
    step = Step(planted)
    inputs = Inputs(steps)
    for place in range(steps):
        inputs.feed(step, place)
        tell("eager", place, step(place))


def captured(name, planted, steps):
    step = Step(planted)
    inputs = Inputs(steps)
    for place in range(2):  # warm up
        inputs.feed(step, place)
        step(place)
    torch.npu.synchronize()
    graph = torch.npu.NPUGraph()
    try:
        with torch.npu.graph(graph):
            result = step(2)
    except RuntimeError as error:
        print(name, "failed:", str(error).splitlines()[0])
        return
    for place in range(steps):
        inputs.feed(step, place)
        graph.replay()
        tell(name, place, result)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mistakes", nargs="*", choices=[[], *MISTAKES], metavar="MISTAKE")
    parser.add_argument("--captured", action="store_true")
    parser.add_argument("--steps", type=int, default=6)
    args = parser.parse_args()
    if not args.captured:
        eager(args.mistakes, args.steps)
        return
    for mistake in args.mistakes or ["right"]:
        captured(mistake, {mistake}, args.steps)


if __name__ == "__main__":
    main()
