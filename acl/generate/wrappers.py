"""Generates the recording wrappers of the ACL interface (recorder/acl).

usage: wrappers.py OUTPUT_DIRECTORY PARTS

Writes acl_calls.cpp (a wrapper per interface function, and what the recorder knows of it) and
operator_calls_0.cpp .. operator_calls_(PARTS-1).cpp (both phases of every operator).
"""

import os
import sys

import tables

PREFIXES = ("aclrt", "aclmdlRI", "aclInit", "aclFinalize")

# Memory that a call reads or writes: parameter -> direction, and how many bytes. `count` names the
# parameter that holds them, `words` one that counts four-byte words, `fixed` says them, and `plane`
# names pitch, width and height.
COPY = {"dst": ("out", "count", "count"), "src": ("in", "count", "count")}
COPY_2D = {
    "dst": ("out", "plane", ("dpitch", "width", "height")),
    "src": ("in", "plane", ("spitch", "width", "height")),
}
MEMORY = {
    "aclrtMemcpy": COPY,
    "aclrtMemcpyAsync": COPY,
    "aclrtMemcpyAsyncWithCondition": COPY,
    "aclrtMemcpy2d": COPY_2D,
    "aclrtMemcpy2dAsync": COPY_2D,
    "aclrtMemset": {"devPtr": ("out", "count", "count")},
    "aclrtMemsetAsync": {"devPtr": ("out", "count", "count")},
    "aclrtMemsetD32": {"ptr": ("out", "words", "N")},
    "aclrtMemsetD32Async": {"ptr": ("out", "words", "N")},
    "aclrtValueWrite": {"devAddr": ("out", "fixed", 8)},
    "aclrtValueWait": {"devAddr": ("in", "fixed", 8)},
    "aclrtGetOverflowStatus": {"outputAddr": ("out", "count", "outputSize")},
    "aclrtGetFloatOverflowStatus": {"outputAddr": ("out", "count", "outputSize")},
    "aclrtReduceAsync": {"dst": ("inout", "count", "count"), "src": ("in", "count", "count")},
}

# A call may change memory or handles besides what it returns (recorder/acl/interface.h, Effect).
# The first word is that effect; the parameters that it needs follow.
EFFECTS = {
    "aclrtMalloc": ("kDeviceBirth", "devPtr", "size"),
    "aclrtMallocAlign32": ("kDeviceBirth", "devPtr", "size"),
    "aclrtMallocCached": ("kDeviceBirth", "devPtr", "size"),
    "aclrtMallocWithCfg": ("kDeviceBirth", "devPtr", "size"),
    "aclrtMallocForTaskScheduler": ("kDeviceBirth", "devPtr", "size"),
    "aclrtMemAllocManaged": ("kDeviceBirth", "ptr", "size"),
    "aclrtMemPoolMallocAsync": ("kDeviceBirth", "ptr", "size"),
    "aclrtReserveMemAddress": ("kDeviceBirth", "virPtr", "size"),
    "aclrtReserveMemAddressNoUCMemory": ("kDeviceBirth", "virPtr", "size"),
    "aclrtMallocHost": ("kHostBirth", "hostPtr", "size"),
    "aclrtMallocHostWithCfg": ("kHostBirth", "ptr", "size"),
    "aclrtHostRegister": ("kHostRegister", "ptr", "size"),
    "aclrtHostRegisterV2": ("kHostRegister", "ptr", "size"),
    "aclrtFree": ("kDeath", "devPtr"),
    "aclrtFreeWithDevSync": ("kDeath", "devPtr"),
    "aclrtMemPoolFreeAsync": ("kDeath", "ptr"),
    "aclrtReleaseMemAddress": ("kDeath", "virPtr"),
    "aclrtFreeHost": ("kDeath", "hostPtr"),
    "aclrtFreeHostWithDevSync": ("kDeath", "hostPtr"),
    "aclrtHostUnregister": ("kDeath", "ptr"),
    "aclrtDestroyStream": ("kStreamEnd", "stream"),
    "aclrtDestroyStreamForce": ("kStreamEnd", "stream"),
    "aclrtDestroyEvent": ("kEventEnd", "event"),
    "aclmdlRIDestroy": ("kModelEnd", "modelRI"),
    "aclmdlRICaptureBegin": ("kCaptureBegin", "stream", "mode"),
    "aclmdlRICaptureToModelRIBegin": ("kCaptureBegin", "stream", "mode"),
    "aclmdlRICaptureEnd": ("kCaptureEnd", "stream"),
    "aclmdlRICaptureTaskGrpEnd": ("kGroupEnd", "stream", "handle"),
    "aclmdlRICaptureTaskUpdateBegin": ("kUpdateBegin", "stream", "handle"),
    "aclmdlRICaptureTaskUpdateEnd": ("kUpdateEnd", "stream"),
    "aclmdlRIExecuteAsync": ("kExecute", "modelRI", "stream"),
    "aclmdlRIExecute": ("kExecute", "modelRI"),
    "aclrtMemcpy": ("kCopy", "dst", "src", "count"),
    "aclrtMemcpyAsync": ("kCopy", "dst", "src", "count"),
    "aclrtMemcpyAsyncWithCondition": ("kCopy", "dst", "src", "count"),
    "aclrtMemcpy2d": ("kCopy2d", "dst", "src", "spitch"),
    "aclrtMemcpy2dAsync": ("kCopy2d", "dst", "src", "spitch"),
    "aclrtMemset": ("kFill", "devPtr"),
    "aclrtMemsetAsync": ("kFill", "devPtr"),
    "aclrtMemsetD32": ("kFill", "ptr"),
    "aclrtMemsetD32Async": ("kFill", "ptr"),
    "aclrtSetDevice": ("kDeviceChange",),
    "aclrtResetDevice": ("kDeviceEnd",),
    "aclrtResetDeviceForce": ("kDeviceEnd",),
    "aclrtCreateContext": ("kDeviceChange",),
    "aclrtSetCurrentContext": ("kDeviceChange",),
    "aclrtDestroyContext": ("kDeviceEnd",),
    "aclFinalize": ("kDeviceEnd",),
    "aclFinalizeReference": ("kDeviceEnd",),
    **{name: ("kWork",) for name in (
        "aclrtLaunchKernel", "aclrtLaunchKernelWithConfig", "aclrtLaunchKernelV2",
        "aclrtLaunchKernelWithHostArgs", "aclrtLaunchKernelWithArgsArray",
        "aclrtLaunchSIMTKernelWithArgsArray", "aclrtLaunchSIMTKernelWithHostArgs",
        "aclrtReduceAsync", "aclrtMemcpyFromSymbolAsync", "aclrtMemcpyToSymbolAsync",
        "aclrtMemcpyAsyncWithOffset", "aclrtMemcpyAsyncWithDesc", "aclrtMemcpyBatchAsync",
        "aclrtMemcpyBatchAsyncV2", "aclopCompileAndExecute", "aclopCompileAndExecuteV2")},
    **{name: ("kWait",) for name in (
        "aclrtSynchronizeStream", "aclrtSynchronizeStreamWithTimeout", "aclrtSynchronizeDevice",
        "aclrtSynchronizeDeviceWithTimeout", "aclrtSynchronizeEvent",
        "aclrtSynchronizeEventWithTimeout")},
    # They call functions of the program, whose calls are recorded too.
    "aclrtProcessReport": ("kCallsBack",),
    "aclrtProcessHostFunc": ("kCallsBack",),
    "aclmdlRICaptureThreadExchangeMode": ("kExchange", "mode"),
}

# Parameters whose NULL is the default stream (rule GEN-04); elsewhere a NULL stream is none.
NO_DEFAULT_STREAM = ("aclmdlRICapture", "aclrtDestroyStream", "aclrtSubscribe", "aclrtUnSubscribe",
                     "aclmdlRIGetTasksByStream", "aclrtAllocator")

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


def rule(function, index, enums, structs):
    """C++ initialiser of one argument's rule, and its schema text."""
    params = function["params"]
    param = params[index]
    ctype = plain(param["type"])
    names = [p["name"] for p in params]
    memory = MEMORY.get(function["name"], {}).get(param["name"])
    role, sizes, direction = "kInt", (-1, -1, -1), "in"
    array = "num" in names or any(n in ARRAY_SIZES and "*" not in p["type"] for n, p in zip(names, params)
                                  if function["name"] not in MEMORY)
    if memory:
        direction, way, size = memory
        role = {"count": "kRange", "words": "kWords", "fixed": "kFixed", "plane": "kPlane"}[way]
        if way == "fixed":
            sizes = (size, -1, -1)
        elif way == "plane":
            sizes = tuple(names.index(part) for part in size)
        else:
            sizes = (names.index(size), -1, -1)
    elif ctype == "aclrtStream":
        role = "kStreamOrNone" if function["name"].startswith(NO_DEFAULT_STREAM) else "kStream"
    elif ctype == "aclrtEvent":
        role = "kEvent"
    elif ctype == "aclmdlRI":
        role = "kModel"
    elif ctype == "aclrtStream*" and function["name"] == "aclrtCtxGetCurrentDefaultStream":
        role, direction = "kOutDefaultStream", "out"
    elif ctype == "aclrtStream*" and function["name"].startswith("aclrtCreateStream"):
        role, direction = "kOutStream", "out"
    elif ctype == "aclrtEvent*" and not array:
        role, direction = "kOutEvent", "out"
    elif ctype == "aclmdlRI*" and not array:
        role, direction = "kOutModel", "out"
    elif function["name"] == "aclmdlRICaptureThreadExchangeMode":
        role, direction = "kExchanged", "inout"
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
    written = "true" if direction != "in" else "false"
    values = ", ".join(str(size) for size in sizes)
    return f"{{Role::{role}, {written}, {{{values}}}}}", f"{ctype}{marker} {param['name']}"


def stream_position(function):
    for index, param in enumerate(function["params"]):
        if plain(param["type"]) == "aclrtStream":
            return index
    return -1


def interface(directory):
    abi = tables.abi()
    enums = {row["name"] for row in abi["enums"]}
    structs = {row["name"] for row in abi["structs"]}
    functions = [f for f in abi["functions"]
                 if f["name"].startswith(PREFIXES) and f["group"] != "aclnn"]
    rules, rows, wrappers, first = "", "", "", 0
    for index, function in enumerate(functions):
        params = function["params"]
        schema = []
        for position in range(len(params)):
            text, part = rule(function, position, enums, structs)
            rules += f"    {text},\n"
            schema.append(part)
        names = [p["name"] for p in params]
        effect = EFFECTS.get(function["name"], ("kNone",))
        at = [names.index(name) for name in effect[1:]] + [-1] * (4 - len(effect))
        dialect = 3 if function["name"].startswith("aclmdlRI") else 2
        rows += (
            f'    {{"{function["name"]}", "{function["name"]}({", ".join(schema)})", {dialect}, '
            f"{len(params)}, {stream_position(function)}, Effect::{effect[0]}, "
            f"{{{at[0]}, {at[1]}, {at[2]}}}, kRules + {first}}},\n"
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
