"""Generates the version script of the libopapi.so that exports operators with kernels alone.

The operators are those that the tables of runtime/opapi/kernels name. A test holds the library against
the kernels themselves (tests/opapi/kernel_exports_test.cpp).

usage: kernel_exports.py KERNELS_DIRECTORY OUTPUT
"""

import os
import re
import sys

import tables

# A row of a table, and the mark of one that also serves the in-place form of its operator.
ROW = re.compile(r'\{"aclnn(\w+)",(\s*kAlsoInPlace\b)?')
# What other libraries and the command ask the library for.
OTHERS = ["SoftOperatorHasKernel"]


def with_kernels(directory):
    names = set()
    for name in os.listdir(directory):
        if name.endswith(".cpp"):
            with open(os.path.join(directory, name)) as file:
                for op, in_place in ROW.findall(file.read()):
                    names.update(["aclnn" + op] + ["aclnnInplace" + op] * bool(in_place))
    return names


def main():
    directory, output = sys.argv[1:]
    names = list(OTHERS) + [row["function"] for row in tables.host_functions()]
    for op in sorted(with_kernels(directory) - tables.not_exported()):
        names += [op, op + "GetWorkspaceSize"]
        if op in tables.max_workspace():
            names.append(op + "GetMaxWorkspaceSize")
    text = "/* Generated from runtime/opapi/kernels; do not edit. */\n{\n  global:\n"
    text += "".join(f"    {name};\n" for name in names) + "  local:\n    *;\n};\n"
    tables.write_if_changed(output, text)


main()
