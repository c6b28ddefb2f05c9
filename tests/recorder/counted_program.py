#!/usr/bin/env python3
"""The programs whose instructions cost_test.py counts, each in two windows that callgrind sees.

    counted_program.py WINDOW_LIBRARY WORKLOADS_FOLDER

A window holds a program with few repetitions or with many. Its dump has the name "decoder 3". Imports and
first-time work lie before the windows.
"""
import contextlib
import ctypes
import gc
import importlib.util
import io
import os
import sys

import torch

# The repetitions of the two windows of each program.
PROGRAMS = {"add loop": (100, 600), "decoder": (3, 8)}


def add_loop(count):
    a, b = torch.ones(4), torch.ones(4)
    with torch.no_grad():
        for _ in range(count):
            a + b


def decoder(folder):
    path = os.path.join(folder, "decoder.py")
    spec = importlib.util.spec_from_file_location("decoder", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def run(count):
        sys.argv = [path, "--tokens", str(count)]
        with contextlib.redirect_stdout(io.StringIO()):
            module.main()

    return run


def main():
    window = ctypes.CDLL(sys.argv[1])
    gc.disable()  # a collection would fall into one window and not into the other
    for name, run in (("add loop", add_loop), ("decoder", decoder(sys.argv[2]))):
        few, many = PROGRAMS[name]
        run(many)
        for count in (few, many):
            window.count_begin()
            run(count)
            window.count_end(f"{name} {count}".encode())


if __name__ == "__main__":
    main()
