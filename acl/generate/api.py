"""Generates the loader's table of interface functions (acl/loader/library.h).

usage: api.py OUTPUT_FILE
"""

import sys

import tables


def main():
    abi = tables.abi()
    headers = sorted({row["header"] for row in abi["functions"]})
    members = "".join(
        f"  decltype(&::{row['name']}) {row['name']} = nullptr;\n" for row in abi["functions"]
    )
    rows = "".join(
        f'    {{"{row["name"]}", offsetof(Api, {row["name"]})}},\n' for row in abi["functions"]
    )
    text = (
        "// Generated from acl/data/acl_abi.json; do not edit.\n#pragma once\n\n"
        "#include <cstddef>\n\n" + "".join(f'#include "{header}"\n' for header in headers) + "\n"
        "namespace acltape::acl {\n\n"
        "// Every function of the ACL C interface; null where the library does not have it.\n"
        f"struct Api {{\n{members}}};\n\n"
        "struct ApiMember {\n  const char* name;\n  size_t offset;  // in Api, bytes\n};\n\n"
        f"inline constexpr ApiMember kApiMembers[] = {{\n{rows}}};\n\n"
        "}  // namespace acltape::acl\n"
    )
    tables.write_if_changed(sys.argv[1], text)


main()
