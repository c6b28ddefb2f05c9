"""Reads the two tables in acl/data and writes generated files, leaving equal ones untouched."""

import functools
import json
import os

DATA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data")


def abi():
    """The interface: typedefs, enums, macros, structs, opaque_structs, functions."""
    with open(os.path.join(DATA, "acl_abi.json")) as file:
        return json.load(file)


def further():
    """Interfaces of libraries beside those of ACL, in the form of abi()."""
    with open(os.path.join(DATA, "further_abi.json")) as file:
        return json.load(file)


def hccl():
    """The functions of libhccl.so that give work to a stream, in the form of abi()["functions"].

    "numbers" are the types of parameters that are enumerations. The header is one that no table makes.
    """
    with open(os.path.join(DATA, "hccl_abi.json")) as file:
        return json.load(file)


def recorded():
    """The functions of which acl/data/meaning.json speaks."""
    return abi()["functions"] + hccl()["functions"]


def overloads():
    """C++ overloads of interface functions: template parameters, signature, and the call that each makes."""
    with open(os.path.join(DATA, "overloads.json")) as file:
        return json.load(file)


def operators():
    """The operators by name; the position in this list is the operator's index everywhere.

    Those of the vendor's toolkit, those that the plug-in of vLLM brings in a library of its own, and those that
    stand for operations of libatb.so (runtime/compat/atb_operation.h).
    """
    rows = []
    for name in ("aclnn_ops.json", "vllm_ascend_ops.json", "atb_ops.json"):
        with open(os.path.join(DATA, name)) as file:
            rows += json.load(file)
    return sorted(rows, key=lambda op: op["op"])


def not_exported():
    """Names of the operators that libopapi.so does not export; the file says why, one by one."""
    with open(os.path.join(DATA, "not_exported.json")) as file:
        return {row["op"] for row in json.load(file)}


def host_functions():
    """Functions of operator headers that compute on the host at once and are no operators."""
    with open(os.path.join(DATA, "host_functions.json")) as file:
        return json.load(file)


@functools.cache
def max_workspace():
    """Names of the operators with a further function, aclnnXGetMaxWorkspaceSize.

    It tells the workspace that suffices for all contents of the operator's arrays, such as lengths of
    sequences. A program that captures the operator takes that much, and updates the lengths later.
    """
    with open(os.path.join(DATA, "max_workspace.json")) as file:
        return set(json.load(file))


def write_if_changed(path, text):
    """Writes `text` unless the file holds it already, so that nothing is recompiled for nothing."""
    try:
        with open(path) as file:
            if file.read() == text:
                return
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def packed_arguments(op):
    """C++ declaration of `argument_values`: an operator's parameters as acltape::acl::ArgValue."""
    packed = ", ".join(f"Pack({arg['name']})" for arg in op["args"])
    if not packed:
        return "const ArgValue* argument_values = nullptr;"
    return f"const ArgValue argument_values[] = {{{packed}}};"


def first_phase(index, op, further="", name="GetWorkspaceSize"):
    """Definition of an operator's first phase, which hands its packed arguments to Prepare, and `further`."""
    params = "".join(f"{arg['ctype']} {arg['name']}, " for arg in op["args"])
    return (
        f"aclnnStatus {op['op']}{name}({params}uint64_t* workspaceSize, "
        f"aclOpExecutor** executor) {{\n  {packed_arguments(op)}\n"
        f"  return Prepare({index}, argument_values, workspaceSize, executor{further});\n}}\n"
    )


def parameter_list(params, variadic=False):
    """C parameter list of an interface function."""
    items = [f"{p['type']} {p['name']}".replace("* ", "*") for p in params]
    if variadic:
        items.append("...")
    return ", ".join(items) if items else "void"
