#!/usr/bin/env python3
"""The decoder of bench/workloads with weights and activations in float16.

Operators that a CPU lacks for float16 compute in float32 and round their results. With --fault the
attention scores of one layer are multiplied before they are scaled, beyond what float16 holds: the
half recording then parts from the float one at that call and nowhere before. --fault=N: in the Nth
of all layers that are executed, 3 without it.
"""
import os
import sys

import torch
from torch.nn import functional as F

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "bench", "workloads"))
import decoder  # noqa: E402


def rounded(function):
    def call(*args, **options):
        half = any(torch.is_tensor(x) and x.dtype == torch.float16 for x in args)
        wide = [x.float() if torch.is_tensor(x) and x.dtype == torch.float16 else x for x in args]
        result = function(*wide, **options)
        return result.half() if half else result
    return call


F.linear, F.layer_norm = rounded(F.linear), rounded(F.layer_norm)
F.gelu, F.softmax = rounded(F.gelu), rounded(F.softmax)
torch.matmul = rounded(torch.matmul)
decoder.Decoder.eval = lambda model: model.train(False).half()

faults = [word for word in sys.argv if word.startswith("--fault")]
if faults:
    sys.argv.remove(faults[0])
    faulty = int(faults[0].partition("=")[2] or 3)  # the faulty one among the calls of attend
    plain = decoder.Block.attend

    def attend(self, query, key, value, mask):
        attend.calls += 1
        if attend.calls != faulty:
            return plain(self, query, key, value, mask)
        return plain(self, query * 64, key * 64, value, mask)

    attend.calls = 0
    decoder.Block.attend = attend

decoder.main()
