"""Generates the exported operator functions of the soft device's libopapi.so.

Operators of acl/data/not_exported.json are left out. Each packs its arguments and hands them to
acltape::opapi::Prepare or Launch (runtime/opapi/stub.h). No workspace here depends on the contents of an
array, so that the greatest one (acl/data/max_workspace.json) is that of the first phase.

usage: exports.py OUTPUT_DIRECTORY PARTS   writes aclnn_exports_0.cpp .. aclnn_exports_(PARTS-1).cpp
"""

import os
import sys

import tables


def definition(index, op):
    unused = "".join(f"{arg['ctype']}, " for arg in op["args"]) if op.get("exec_signature") else ""
    first = tables.first_phase(index, op)
    if op["op"] in tables.max_workspace():
        first += tables.first_phase(index, op, name="GetMaxWorkspaceSize")
    return first + (
        f"aclnnStatus {op['op']}(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, "
        f"{unused}aclrtStream stream) {{\n"
        f"  return Launch({index}, workspace, workspaceSize, executor, stream);\n}}\n"
    )


def main():
    directory, parts = sys.argv[1], int(sys.argv[2])
    absent = tables.not_exported()
    operators = [row for row in enumerate(tables.operators()) if row[1]["op"] not in absent]
    size = (len(operators) + parts - 1) // parts
    for part in range(parts):
        rows = operators[part * size : (part + 1) * size]
        headers = sorted({op["header"] for _, op in rows})
        text = "// Generated from acl/data/aclnn_ops.json; do not edit.\n"
        text += "".join(f'#include "aclnnop/{header}"\n' for header in headers)
        text += '#include "acl/invoke/arg_value.h"\n#include "runtime/opapi/stub.h"\n\n'
        text += "using acltape::acl::ArgValue;\nusing acltape::acl::Pack;\n"
        text += "using acltape::opapi::Launch;\nusing acltape::opapi::Prepare;\n\n"
        text += 'extern "C" {\n' + "".join(definition(index, op) for index, op in rows) + "}\n"
        tables.write_if_changed(os.path.join(directory, f"aclnn_exports_{part}.cpp"), text)


main()
