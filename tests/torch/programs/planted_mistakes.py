#!/usr/bin/env python3
"""Runs a program with mistakes planted after its model, without a change of its file.

    planted_mistakes.py MISTAKES PROGRAM [ARGUMENTS]

MISTAKES is a list of these words, separated by commas:
  item      reads a result on the host in each step
  rate      adds with a factor of the host that is another one in each step
  constant  adds with the wrong factor
  none      adds with the right factor

Beside the addition stands a branch that is joined with it, so that a plan can put the two on two streams.

A mistake is made whenever the outermost module has returned. Its line ends with a mark.
"""
import os
import runpy
import sys

from torch.nn.modules import module as modules


class Planted:
    def __init__(self, mistakes):
        self.mistakes = mistakes
        self.depth = 0
        self.uses = 0

    def enter(self, module, inputs):
        self.depth += 1

    def leave(self, module, inputs, output):
        self.depth -= 1
        if self.depth > 0:
            return output
        self.uses += 1
        factor = 0.5
        if "rate" in self.mistakes:
            factor = 1 / (1 + self.uses)
        if "constant" in self.mistakes:
            factor = -16.0
        scaled = output.add(output, alpha=factor)  #: factor
        beside = output.neg()  #: beside
        joined = scaled.sub(beside, alpha=4)  #: joined
        if "item" in self.mistakes:
            joined.sum().item()  #: item
        return joined


def main():
    mistakes, program = sys.argv[1].split(","), sys.argv[2]
    planted = Planted(mistakes)
    modules.register_module_forward_pre_hook(planted.enter)
    modules.register_module_forward_hook(planted.leave)
    sys.argv = sys.argv[2:]
    sys.path.insert(0, os.path.dirname(os.path.abspath(program)))
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
