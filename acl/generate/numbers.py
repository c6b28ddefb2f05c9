"""Writes the numbers of the ACL interface for code that may not include the interface's headers.

usage: numbers.py DIRECTORY   writes meaning/interface_numbers.h and meaning/parameter_positions.h below it
"""

import os
import sys

import meaning
import tables

# Enumerations of which a trace keeps the names of values: the C++ table, what begins each name of the
# interface, and how the rest is spelled in a trace. A trace says what is in NOT_NAMED by its number: the
# recorder does not keep how these formats store a tensor, so a replay must refuse them.
NOT_NAMED = ("ACL_FORMAT_FRACTAL_NZ_C0_",)
NAMED = {
    "aclFormat": ("kAclFormats", ("ACL_FORMAT_", "ACL_"), str),
    "aclmdlRICaptureMode": ("kAclCaptureModes", ("ACL_MODEL_RI_CAPTURE_MODE_",), str.lower),
}


def constant(name):
    """ACL_EVENT_EXTERNAL as a C++ constant: kAclEventExternal."""
    return "k" + "".join(part[:1].upper() + part[1:].lower() for part in name.split("_"))


def position(parameter):
    """dstPitch as a C++ constant: kDstPitch."""
    return "k" + parameter.strip("_")[:1].upper() + parameter.strip("_")[1:]


def type_of(value, unsigned):
    bits = 32 if -2**31 <= value < (2**32 if unsigned else 2**31) else 64
    return f"{'u' if unsigned else ''}int{bits}_t"


def numbers(abi):
    """Name, value and C++ type of the constants, in the order of the interface."""
    found = {}
    for enum in abi["enums"]:
        for value in enum["values"]:
            found[value["name"]] = (value["value"], type_of(value["value"], False))
    for macro in abi["macros"]:
        unsigned = macro["ctype"].startswith("unsigned") or macro["ctype"].startswith("uint")
        found[macro["name"]] = (macro["value"], type_of(macro["value"], unsigned))
    return {name: row for name, row in found.items() if name.startswith("ACL")}


def named_values(enum):
    table, prefixes, spelling = NAMED[enum["name"]]
    rows = ""
    for value in enum["values"]:
        if value["value"] < 0 or value["name"].startswith(NOT_NAMED):
            continue
        prefix = next(prefix for prefix in prefixes if value["name"].startswith(prefix))
        rows += f'    {{{constant(value["name"])}, "{spelling(value["name"][len(prefix):])}"}},\n'
    return f"// {enum['name']}\ninline constexpr NamedNumber {table}[] = {{\n{rows}}};\n"


def numbers_text(abi):
    rows = numbers(abi)
    by_constant = {constant(name): name for name in rows}
    if len(by_constant) != len(rows):
        raise SystemExit("acl/data/acl_abi.json: two names give one constant")
    constants = "".join(f"inline constexpr {ctype} {constant(name)} = {value};\n"
                        for name, (value, ctype) in rows.items())
    named = "\n".join(named_values(enum) for enum in abi["enums"] if enum["name"] in NAMED)
    return (
        "// Generated from acl/data/acl_abi.json; do not edit. The numbers of the ACL interface under its\n"
        "// names: ACL_EVENT_EXTERNAL is kAclEventExternal.\n#pragma once\n\n"
        "#include <cstdint>\n#include <string_view>\n\nnamespace acltape::meaning {\n\n"
        f"{constants}\n"
        "// A number and its name in traces.\n"
        "struct NamedNumber {\n  int32_t number;\n  std::string_view name;\n};\n\n"
        f"{named}\n}}  // namespace acltape::meaning\n"
    )


def positions_text(functions):
    further = {row["name"]: [declared.split()[-1] for declared in row["further"]]
               for row in meaning.read_data()["functions"] if "further" in row}
    texts = ""
    for function in functions:
        names = [parameter["name"] for parameter in function["params"]] + further.get(function["name"], [])
        rows = "".join(f"inline constexpr int {position(name)} = {at};\n" for at, name in enumerate(names))
        if rows:
            texts += f"namespace {function['name']} {{\n{rows}}}  // namespace {function['name']}\n"
    return (
        "// Generated from acl/data; do not edit. The positions of the parameters of interface\n"
        "// functions, from 0. A recorded call has its arguments in this order, and then those that the recorder\n"
        "// adds (acl/data/meaning.json, further).\n#pragma once\n\n"
        f"namespace acltape::meaning::position {{\n\n{texts}\n}}  // namespace acltape::meaning::position\n"
    )


def main():
    place = os.path.join(sys.argv[1], "meaning")
    abi = tables.abi()
    tables.write_if_changed(os.path.join(place, "interface_numbers.h"), numbers_text(abi))
    tables.write_if_changed(os.path.join(place, "parameter_positions.h"), positions_text(tables.recorded()))


if __name__ == "__main__":
    main()
