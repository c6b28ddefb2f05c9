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
boxes, scores = torch.rand(1, 4, 1, 4).half().npu(), torch.rand(1, 4, 1).half().npu()
CALLS = {
    "BatchMultiClassNonMaxSuppression": lambda: torch_npu.npu_batch_nms(boxes, scores, 0.3, 0.5, 3, 4),
    "Slice": lambda: torch_npu.npu_slice(x, [0, 0], [9, 9]),
}
for name, call in CALLS.items():
    text = said(call)
    print(name, name in text, "goes on", torch.equal((x + 1).cpu(), x.cpu() + 1))
    if name not in text:
        print(text)
