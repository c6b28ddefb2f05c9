"""Reads a file of callgrind's whose dumps were triggered by count_end of tests/recorder/count_window.c."""
import collections
import os
import re


def read_dumps(path):
    """The name of its window, the thread, and instructions by (object, function) of each dump.

    The format: `ob=(3) NAME`, later `ob=(3)`, begins the lines of an object, `fn=` those of a function in it;
    `cob=` and `cfn=` name one that is called. A line of a position and a number is a cost, but after `calls=`
    it is what the callee took.
    """
    names, at = {}, {"ob": "", "fn": ""}
    window, thread, counts, callee = None, 1, collections.Counter(), False
    with open(path, errors="replace") as file:
        for line in file:
            if line.startswith("part: "):
                window, thread, counts = None, 1, collections.Counter()
            elif line.startswith("thread: "):
                thread = int(line.split()[1])
            elif line.startswith("desc: Trigger: Client Request: "):
                window = line.split(": ")[3].strip()
            elif match := re.match(r"(c?)(ob|fn)=(\(\d+\)) ?(.*)", line):
                called, kind, number, name = match.groups()
                if name:
                    names[kind, number] = os.path.basename(name) if kind == "ob" else name
                if not called:
                    at[kind] = names[kind, number]
            elif line.startswith("calls="):
                callee = True
            elif re.match(r"[-+*\d]", line):
                if not callee:
                    counts[at["ob"], at["fn"]] += int(line.split()[1])
                callee = False
            elif line.startswith("totals: ") and window is not None:
                assert counts.total() == int(line.split()[1]), f"{path} was not understood: {counts.total()}, {line}"
                yield window, thread, counts
