"""Generates the rows of the operator table (acl/invoke/operator_table.h).

usage: operator_rows.py OUTPUT_DIRECTORY   writes operator_rows.h and operator_rows.cpp
"""

import os
import sys

import tables

KINDS = {
    "tensor": "kTensor",
    "tensor_list": "kTensorList",
    "scalar": "kScalar",
    "scalar_list": "kScalarList",
    "int_array": "kIntArray",
    "float_array": "kFloatArray",
    "bool_array": "kBoolArray",
    "string": "kString",
    "bool": "kBool",
    "int8": "kInt8",
    "int32": "kInt32",
    "int64": "kInt64",
    "uint32": "kUint32",
    "uint64": "kUint64",
    "dtype": "kDtype",
    "float": "kFloat",
    "double": "kDouble",
}
DIRECTIONS = {"in": "kIn", "out": "kOut", "inout": "kInOut"}


def boolean(value):
    return "true" if value else "false"


def main():
    operators = tables.operators()
    args, rows, first = "", "", 0
    for index, op in enumerate(operators):
        for arg in op["args"]:
            args += (
                f'    {{"{arg["name"]}", ArgKind::{KINDS[arg["kind"]]}, '
                f"Direction::{DIRECTIONS[arg['dir']]}, {boolean(arg.get('optional'))}}},\n"
            )
        types = ", ".join(arg["ctype"] for arg in op["args"])
        repeats = bool(op.get("exec_signature"))
        launch = f"&Trampoline<{types}>::LaunchRepeating" if repeats else "&Launch"
        rows += (
            f'    {{"{op["op"]}", "{op["op"]}GetWorkspaceSize", "aclnnop/{op["header"]}", '
            f'"{op["domain"]}", {index}, {len(op["args"])}, kArgs + {first}, '
            f"{boolean(op.get('experimental'))}, "
            f"{boolean(repeats)}, &Trampoline<{types}>::Prepare, {launch}}},\n"
        )
        first += len(op["args"])
    header = (
        "// Generated from acl/data/aclnn_ops.json; do not edit.\n#pragma once\n\n"
        '#include "acl/invoke/operator_table.h"\n\nnamespace acltape::acl {\n\n'
        f"inline constexpr uint32_t kOperatorCount = {len(operators)};\n"
        "extern const OperatorInfo kOperators[kOperatorCount];  // in order of names\n\n"
        "}  // namespace acltape::acl\n"
    )
    source = (
        "// Generated from acl/data/aclnn_ops.json; do not edit.\n"
        '#include "generated/acl/operator_rows.h"\n\n#include "acl/invoke/trampoline.h"\n\n'
        "namespace acltape::acl {\nnamespace {\n\n"
        "aclnnStatus Launch(void* function, const ArgValue*, void* workspace, uint64_t size,\n"
        "                   aclOpExecutor* executor, aclrtStream stream) {\n"
        "  using Function = aclnnStatus (*)(void*, uint64_t, aclOpExecutor*, aclrtStream);\n"
        "  return reinterpret_cast<Function>(function)(workspace, size, executor, stream);\n}\n\n"
        f"constexpr ArgInfo kArgs[] = {{\n{args}}};\n\n}}  // namespace\n\n"
        f"const OperatorInfo kOperators[kOperatorCount] = {{\n{rows}}};\n\n"
        "}  // namespace acltape::acl\n"
    )
    tables.write_if_changed(os.path.join(sys.argv[1], "operator_rows.h"), header)
    tables.write_if_changed(os.path.join(sys.argv[1], "operator_rows.cpp"), source)


main()
