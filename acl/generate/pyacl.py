"""Generates the Python package `acl` of the soft device.

acl/data/pyacl.json has a row for each function. Parameters and types come from acl_abi.json. A row says
  name      where it is not that of the C function in words: aclrtMemcpyAsync is rt.memcpy_async
  gives     parameters that come back, in this order, before the code: outputs, or an input as it was
  lists     parameter that is a list in Python: the parameter with its length
  texts     parameter that the function fills with text, which comes back: the parameter with its room
  optional  texts that may be left out
  nulls     outputs that the interface reserves: it gets NULL, and 0 comes back
The modules beside the table are those of acl/pyacl.

usage: pyacl.py FOLDER   writes the package acl into it
       pyacl.py --names  prints the names of the table, one a line
"""

import json
import os
import re
import shutil
import sys

import tables

SOURCES = os.path.join(os.path.dirname(tables.DATA), "pyacl")
PREFIXES = (("aclrt", "rt."), ("aclmdl", "mdl."), ("acl", ""))
NUMBERS = {"int": "i32", "int32_t": "i32", "int64_t": "i64", "uint16_t": "u16", "uint32_t": "u32",
           "uint64_t": "u64", "size_t": "u64", "float": "f32"}
COLUMNS = {"function", "name", "gives", "lists", "texts", "optional", "nulls"}


def words(name):
    """create_stream of CreateStream, memcpy_async of MemcpyAsync."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def python_name(row):
    if "name" in row:
        return row["name"]
    for prefix, module in PREFIXES:
        if row["function"].startswith(prefix):
            return module + words(row["function"][len(prefix):])
    raise SystemExit(f"pyacl.json: {row['function']} is no function of ACL")


class Types:
    def __init__(self, abi):
        self.aliases = {each["name"]: each["target"] for each in abi["typedefs"]}
        self.enums = {each["name"] for each in abi["enums"]}

    def kind(self, c_type):
        """How a value of this type is handed over; see acl/pyacl/_binding.py."""
        bare = re.sub(r"\bconst\b", "", c_type).strip()
        if bare.replace(" ", "") == "char*":
            return "text"
        if bare.endswith("*"):
            return "address"
        if bare in self.enums:
            return "i32"
        if bare in NUMBERS:
            return NUMBERS[bare]
        return self.kind(self.aliases[bare])

    def pointed(self, c_type):
        return self.kind(re.sub(r"\bconst\b", "", c_type).strip().removesuffix("*").strip())


def parameter(types, row, each):
    """(use, kind, word, other) of a parameter: for _binding.py. `other` is the list that a count counts, or the
    count that says how much room a text has."""
    name, c_type = each["name"], each["type"]
    word, kind = words(name), types.kind(c_type)
    for counted, count in row.get("lists", {}).items():
        if name == counted:
            return "list", types.pointed(c_type), word, ""
        if name == count:
            return "count", kind, word, words(counted)
    if name in row.get("texts", {}):
        return "buffer", kind, word, words(row["texts"][name])
    if name in row.get("nulls", []):
        return "null", kind, word, ""
    if name in row.get("gives", []) and c_type.strip() != "void *":
        return "out", types.pointed(c_type), word, ""
    return "in", "optional text" if name in row.get("optional", []) else kind, word, ""


def result(types, c_type):
    if c_type in ("aclError", "void"):
        return {"aclError": "code", "void": "nothing"}[c_type]
    return types.kind(c_type)


def table(rows):
    abi = tables.abi()
    functions = {each["name"]: each for each in abi["functions"]}
    types = Types(abi)
    lines = []
    for row in rows:
        function = functions.get(row["function"])
        if function is None or not row.keys() <= COLUMNS:
            raise SystemExit(f"pyacl.json: {row['function']} is not in acl_abi.json, or a column is unknown")
        names = {each["name"] for each in function["params"]}
        named = [*row.get("gives", []), *row.get("lists", {}), *row.get("lists", {}).values(),
                 *row.get("texts", {}), *row.get("texts", {}).values(), *row.get("optional", []), *row.get("nulls", [])]
        for name in named:
            if name not in names:
                raise SystemExit(f"pyacl.json: {row['function']} has no parameter {name}")
        parameters = tuple(parameter(types, row, each) for each in function["params"])
        gives = tuple(words(name) for name in [*row.get("gives", []), *row.get("texts", {})])
        entry = (python_name(row), row["function"], parameters, gives, result(types, function["returns"]))
        lines.append(f"    {entry!r},\n")
    return "# Generated from acl/data/pyacl.json; do not edit.\nFUNCTIONS = (\n" + "".join(lines) + ")\n"


def main():
    with open(os.path.join(tables.DATA, "pyacl.json")) as file:
        rows = json.load(file)
    if sys.argv[1] == "--names":
        print("\n".join(python_name(row) for row in rows))
        return
    folder = os.path.join(sys.argv[1], "acl")
    tables.write_if_changed(os.path.join(folder, "_functions.py"), table(rows))
    for name in sorted(os.listdir(SOURCES)):
        if name.endswith(".py"):
            shutil.copyfile(os.path.join(SOURCES, name), os.path.join(folder, name))


main()
