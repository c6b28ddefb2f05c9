#!/usr/bin/env python3
"""Writes a row for each interface function: how to call it with packed arguments, and its parameters.

    rows.py SOURCE_DIR OUTPUT_FILE
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "acl" / "generate"))
import tables  # noqa: E402

RETURNS = {"aclError": "kCode", "aclnnStatus": "kStatus"}
# Numbers of the operator library; no header has them.
STATUS = [161001, 161002, 361001, 561000, 561003, 561102]


def parameters(function):
    rows = ", ".join(
        f'{{"{re.sub(" +", "", p["type"].replace("const", ""))}", "{p["name"]}", '
        f'{"true" if "const" in p["type"] else "false"}}}' for p in function["params"])
    return f"constexpr Parameter k_{function['name']}[] = {{{rows}}};\n" if rows else ""


def row(function):
    name = function["name"]
    own = f"k_{name}" if function["params"] else "{}"
    returns = RETURNS.get(function["returns"], "kOther")
    return (f'    {{"{name}", &Caller<decltype(&::{name})>::Call, Returns::{returns}, '
            f"{own}}},\n")


def main():
    abi = tables.abi()
    headers = sorted({function["header"] for function in abi["functions"]})
    codes = sorted({m["value"] for m in abi["macros"] if m["name"].startswith("ACL_ERROR_")},
                   key=int)
    tables.write_if_changed(sys.argv[2], (
        "// Generated from acl/data/acl_abi.json; do not edit.\n"
        + "".join(f'#include "{header}"\n' for header in headers)
        + '#include "tests/runtime/misuse/call.h"\n\nnamespace acltape::misuse {\n\n'
        + "".join(parameters(function) for function in abi["functions"])
        + "\nconstexpr Function kFunctions[] = {\n"
        + "".join(row(function) for function in abi["functions"])
        + "};\n\nstd::span<const Function> Functions() { return kFunctions; }\n\n"
        + "const std::set<int64_t>& DocumentedCodes() {\n  static const std::set<int64_t> codes = {"
        + ", ".join(str(code) for code in [*codes, *STATUS])
        + "};\n  return codes;\n}\n\n}  // namespace acltape::misuse\n"))


main()
