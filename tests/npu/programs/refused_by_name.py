"""Operators by name that the device lacks, or refuses for their arguments: each is an exception that names the
operator, at the line or, where the adapter's queue calls, at the next synchronisation; the process goes on."""
import os

import torch
import torch_npu

QUEUED = os.environ["TASK_QUEUE_ENABLE"] != "0"


def said(call):
    try:
        call()
        if not QUEUED:
            return "nothing"
        torch.npu.synchronize()
        return "nothing"
    except RuntimeError as error:
        return str(error)


x = torch.arange(16.0).reshape(4, 4).npu()
torch.npu.set_compile_mode(jit_compile=True)  # the adapter then calls histc by name
CALLS = {
    "Histogram": lambda: torch.histc(x, 4, 0, 16),
    "Slice": lambda: torch_npu.npu_slice(x, [0, 0], [9, 9]),
}
for name, call in CALLS.items():
    text = said(call)
    print(name, name in text, "goes on", torch.equal((x + 1).cpu(), x.cpu() + 1))
    if name not in text:
        print(text)
