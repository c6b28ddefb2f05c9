"""Generates the recording wrappers of the ACL interface (recorder/acl).

usage: wrappers.py OUTPUT_DIRECTORY PARTS

Writes acl_calls.cpp (a wrapper per interface function, and what the recorder knows of it) and
operator_calls_0.cpp .. operator_calls_(PARTS-1).cpp (both phases of every operator).
"""

import os
import sys

import meaning
import tables

OUT_64 = {
    "size_t*", "uint64_t*", "int64_t*", "aclrtContext*", "aclrtNotify*", "aclrtCntNotify*",
    "aclrtDrvMemHandle*", "aclrtTaskGrp*", "aclmdlRICondHandle*", "aclrtLabel*", "aclrtLabelList*",
    "aclrtFuncHandle*", "aclrtBinHandle*", "aclrtMemPool*", "aclrtArgsHandle*", "void**",
}
OUT_32 = {
    "uint32_t*", "int32_t*", "aclrtRunMode*", "aclrtEventStatus*", "aclrtEventRecordedStatus*",
    "aclrtEventWaitStatus*", "aclrtStreamStatus*", "aclrtDeviceStatus*", "aclmdlRITaskType*",
    "aclmdlRICaptureStatus*", "aclmdlRICaptureMode*", "aclrtFloatOverflowMode*",
}
ARRAY_SIZES = {"num", "pidNum", "inputNum", "numTasks", "numStreams", "numBatches", "count",
               "numAttributes", "arraySize"}
NUMBERS = {"size_t", "int", "char", "bool"}


def plain(ctype):
    return ctype.replace("const ", "").replace(" const", "").replace(" ", "").replace("*const", "*")


def is_number(ctype, enums):
    name = plain(ctype)
    return name.endswith("_t") and "*" not in name or name in NUMBERS or name in enums


def memory_rule(known, name, size):
    """Role of memory of so many bytes, and what its bytes are told by."""
    if isinstance(size, int):
        return "kFixed", [size] + [-1] * (SIZES - 1)
    at = [known.position(name, parameter) for parameter in meaning.size_parameters(size)]
    role = (f"kMatrix{next(iter(size)).capitalize()}" if isinstance(size, dict)
            else "kPlane" if isinstance(size, list) and len(size) == 3 else "kCounted" if isinstance(size, list)
            else "kWords" if size.startswith(meaning.WORDS) else "kElements" if meaning.TIMES in size else "kRange")
    return role, at + [-1] * (SIZES - len(at))


SIZES = 4  # parameters that tell an argument's bytes, at most
# How an array is recorded whose length an argument tells: the word of the row, and the role.
ARRAYS = {"counts": "kCounts", "matrix": "kMatrix", "items": "kItems", "handles": "kHandles"}


def rule(known, function, index, enums, structs):
    """C++ initialiser of one argument's rule, and its schema text."""
    params = function["params"]
    param = params[index]
    ctype = plain(param["type"])
    names = [p["name"] for p in params]
    said = [known.argument(function["name"], name) for name in names]
    role, sizes, direction = "kInt", [-1] * SIZES, "in"
    array = "num" in names or any(n in ARRAY_SIZES and "*" not in p["type"] for n, p in zip(names, params)
                                  if not any(isinstance(how, list) for how in said))
    if isinstance(said[index], list) and said[index][0] in ARRAYS:
        role = ARRAYS[said[index][0]]
        sizes = [known.position(function["name"], said[index][1])] + [-1] * (SIZES - 1)
    elif isinstance(said[index], list):
        direction, size = said[index]
        role, sizes = memory_rule(known, function["name"], size)
    elif said[index]:
        role = meaning.constant(said[index])
        direction = "inout" if role == "kExchanged" else "out" if role.startswith("kOut") else "in"
    elif ctype == "aclrtStream":
        role = "kStream"
    elif ctype == "aclrtEvent":
        role = "kEvent"
    elif ctype == "aclmdlRI":
        role = "kModel"
    elif ctype == "HcclComm":
        role = "kCommunicator"
    elif ctype == "aclrtEvent*" and not array:
        role, direction = "kOutEvent", "out"
    elif ctype == "aclmdlRI*" and not array:
        role, direction = "kOutModel", "out"
    elif ctype in OUT_64 and not array:
        role, direction = "kOut64", "out"
    elif ctype in OUT_32 and not array:
        role, direction = "kOut32", "out"
    elif ctype == "float*":
        role, direction = "kOutFloat", "out"
    elif ctype == "char*" and "const" in param["type"]:
        role = "kText"
    elif ctype == "void*":
        role = "kAddress"
    elif ctype in structs:
        role = "kStruct"
    elif not is_number(param["type"], enums) and ctype.endswith("*"):
        role = "kStruct"
    marker = "" if direction == "in" else f"({direction}!)"
    read = "true" if direction != "out" else "false"
    written = "true" if direction != "in" else "false"
    values = ", ".join(str(size) for size in sizes)
    return f"{{Role::{role}, {read}, {written}, {{{values}}}}}", f"{ctype}{marker} {param['name']}"


def stream_position(known, function):
    """Of the stream on which the call works; a stream that the call creates is none yet."""
    streams = [index for index, param in enumerate(function["params"]) if plain(param["type"]) == "aclrtStream"]
    said = known.row(function["name"]).get("stream")
    position = known.position(function["name"], said) if said else -1
    if position in streams:
        return position
    return streams[0] if streams else -1


def is_lasting(known, name, argument_rules, stream):
    """True for a call that is recorded also while recording is closed."""
    said = known.has(name, "lasting")
    creates = any(f"Role::{role}," in argument_rules for role in ("kOutStream", "kOutDefaultStream", "kOutEvent"))
    return not (creates or stream >= 0) if said is None else said


def dialect_of(name):
    """The place of the function's dialect in meaning/dialects.h."""
    return next((place for prefix, place in (("aclmdlRI", 3), ("Hccl", 6)) if name.startswith(prefix)), 2)


def interface(directory):
    abi = tables.abi()
    known = meaning.Meaning()
    enums = {row["name"] for row in abi["enums"]} | set(tables.hccl()["numbers"])
    structs = {row["name"] for row in abi["structs"]}
    functions = known.wrapped
    rules, rows, wrappers, first = "", "", "", 0
    for index, function in enumerate(functions):
        params = function["params"]
        name, stream = function["name"], stream_position(known, function)
        of_arguments = [rule(known, function, at, enums, structs) for at in range(len(params))]
        own_rules = "".join(f"    {text},\n" for text, _ in of_arguments)
        rules += own_rules
        schema = ", ".join([part for _, part in of_arguments] + known.row(name).get("further", []))
        names = [p["name"] for p in params]
        effect, at = known.effect(name)
        at += [-1] * (3 - len(at))
        flags = (is_lasting(known, name, own_rules, stream), known.has(name, "lock"),
                 known.has(name, "work") and stream >= 0)
        rows += (
            f'    {{"{name}", "{name}({schema})", {dialect_of(name)}, '
            f"{len(params)}, {stream}, Effect::{meaning.constant(effect)}, "
            f"{{{at[0]}, {at[1]}, {at[2]}}}, {', '.join('true' if flag else 'false' for flag in flags)}, "
            f"kRules + {first}}},\n"
        )
        first += len(params)
        declared = tables.parameter_list(params)
        passed = ", ".join(names)
        template = f"<{function['returns']}, {index}>"
        wrappers += (
            f"{function['returns']} {function['name']}({declared}) {{\n"
            f"  return Interface{template}({passed});\n}}\n"
        )
    headers = sorted({f["header"] for f in functions})
    text = (
        "// Generated from acl/data/acl_abi.json; do not edit.\n"
        + "".join(f'#include "{header}"\n' for header in headers)
        + '#include "recorder/acl/interface.h"\n\nnamespace acltape::acl_agent {\n\n'
        f"static const ArgumentRule kRules[] = {{\n{rules}}};\n\n"
        f"const CallInfo kCalls[] = {{\n{rows}}};\n"
        f"const uint32_t kCallCount = {len(functions)};\n\n}}  // namespace acltape::acl_agent\n\n"
        "using acltape::acl_agent::Interface;\n\n"
        f'extern "C" {{\n{wrappers}}}\n\n'
        "namespace acltape::acl_agent {\n\nvoid* const kCallWrappers[] = {\n"
        + "".join(f"    reinterpret_cast<void*>(&::{f['name']}),\n" for f in functions)
        + "};\n\n}  // namespace acltape::acl_agent\n"
    )
    tables.write_if_changed(os.path.join(directory, "acl_calls.cpp"), text)


SCHEMA_TYPES = {"tensor": "Tensor", "tensor_list": "Tensor[]", "scalar": "Scalar",
                "scalar_list": "Scalar[]"}


def operator_schema(op):
    parts = []
    for arg in op["args"]:
        marker = "" if arg["dir"] == "in" else f"({arg['dir']}!)"
        parts.append(f"{SCHEMA_TYPES.get(arg['kind'], arg['kind'])}{marker} {arg['name']}")
    parts.append("Tensor(out!) workspace")
    return f"{op['op']}({', '.join(parts)})"


def operator(index, op):
    again, values, repeated = "", "", "nullptr"
    if op.get("exec_signature"):
        again = "".join(f"{arg['ctype']} {arg['name']}, " for arg in op["args"])
        values, repeated = f"  {tables.packed_arguments(op)}\n", "argument_values"
    return tables.first_phase(index, op, ", __builtin_return_address(0)") + (
        f"aclnnStatus {op['op']}(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, "
        f"{again}aclrtStream stream) {{\n{values}"
        f"  return Launch({index}, {repeated}, workspace, workspaceSize, executor, stream);\n}}\n"
    )


def operators(directory, parts):
    rows = list(enumerate(tables.operators()))
    size = (len(rows) + parts - 1) // parts
    for part in range(parts):
        mine = rows[part * size : (part + 1) * size]
        headers = sorted({op["header"] for _, op in mine})
        text = "// Generated from acl/data/aclnn_ops.json; do not edit.\n"
        text += "".join(f'#include "aclnnop/{header}"\n' for header in headers)
        text += '#include "generated/recorder/operator_parts.h"\n'
        text += '#include "recorder/acl/operators.h"\n\nusing acltape::acl::ArgValue;\n'
        text += "using acltape::acl::Pack;\nusing acltape::acl_agent::Launch;\n"
        text += "using acltape::acl_agent::Prepare;\n\n"
        text += 'extern "C" {\n' + "".join(operator(index, op) for index, op in mine) + "}\n\n"
        text += "namespace acltape::acl_agent {\n\n"
        text += f"void* const kOperatorWrappers{part}[] = {{\n"
        for _, op in mine:
            text += f"    reinterpret_cast<void*>(&::{op['op']}GetWorkspaceSize),\n"
            text += f"    reinterpret_cast<void*>(&::{op['op']}),\n"
        text += f"}};\nconst char* const kOperatorSchemas{part}[] = {{\n"
        text += "".join(f'    "{operator_schema(op)}",\n' for _, op in mine)
        text += "};\n\n}  // namespace acltape::acl_agent\n"
        tables.write_if_changed(os.path.join(directory, f"operator_calls_{part}.cpp"), text)
    tables.write_if_changed(
        os.path.join(directory, "operator_parts.h"),
        "// Generated from acl/data/aclnn_ops.json; do not edit.\n#pragma once\n\n"
        "#include <cstddef>\n\nnamespace acltape::acl_agent {\n\n"
        f"constexpr size_t kOperatorsPerPart = {size};\n"
        + "".join(f"extern void* const kOperatorWrappers{part}[];\n"
                  f"extern const char* const kOperatorSchemas{part}[];\n" for part in range(parts))
        + "inline void* const* const kOperatorWrappers[] = {"
        + ", ".join(f"kOperatorWrappers{part}" for part in range(parts)) + "};\n"
        + "inline const char* const* const kOperatorSchemas[] = {"
        + ", ".join(f"kOperatorSchemas{part}" for part in range(parts)) + "};\n\n"
        "}  // namespace acltape::acl_agent\n",
    )


def main():
    interface(sys.argv[1])
    operators(sys.argv[1], int(sys.argv[2]))


main()
