"""Generates the headers that ACL programs include, in the vendor's layout.

usage: headers.py INCLUDE_DIR   writes the headers
       headers.py --list        prints their paths, relative to INCLUDE_DIR, separated by ;
"""

import os
import sys

import tables

# Header -> what it includes. The order of declarations inside one header is: macros, enums, tags,
# handle types, structs, function types, functions.
INCLUDES = {
    "acl/acl_base_rt.h": [],
    "acl/acl_rt_allocator.h": ["acl/acl_base_rt.h"],
    "acl/acl_rt.h": [
        "acl/acl_base_rt.h",
        "acl/acl_rt_allocator.h",
        "acl/error_codes/rt_error_codes.h",
    ],
    "acl/acl_rt_memory_soma.h": ["acl/acl_rt.h"],
    "acl/acl_prof.h": ["acl/acl_rt.h"],
    "acl/acl_dump.h": ["acl/acl_base_rt.h"],
    "acl/acl_op.h": ["acl/acl_base_rt.h"],
    "acl/acl_op_compiler.h": ["acl/acl_op.h", "acl/acl_dump.h"],
    "acl/acl_platform.h": ["acl/acl_base_rt.h"],
    "acl/acl_tdt.h": ["acl/acl_base_rt.h"],
    "acl/acl_tdt_queue.h": ["acl/acl_base_rt.h"],
    "acl/error_codes/rt_error_codes.h": [],
    "acl/error_codes/ge_error_codes.h": [],
    "aclnn/acl_meta.h": ["acl/acl_base_rt.h"],
    "aclnn/aclnn_base.h": ["aclnn/acl_meta.h"],
}
# Headers of other libraries than those of ACL (acl/data/further_abi.json): what they include.
FURTHER = {
    "securec.h": ["<errno.h>", "<stdarg.h>", "<stddef.h>"],
    "mstx/ms_tools_ext.h": ["<dlfcn.h>", "acl/acl_base_rt.h"],
}
# A header whose functions look their library up, so that a program needs to link nothing for it.
LOOKED_UP = {"mstx/ms_tools_ext.h": "libms_tools_ext.so"}
# The header of the overloads for C++ (acl/data/overloads.json).
OVERLOADS = "acl/acl_rt_api.h"
# Headers that only gather others. No function of offline models is declared, because none is offered.
GATHERING = {
    "acl/acl_base.h": ["acl/acl_base_rt.h", "acl/acl_base_mdl.h"],
    "acl/acl_base_mdl.h": ["acl/acl_base_rt.h"],
    "acl/acl_mdl.h": ["acl/acl_base.h", "acl/acl_rt.h", "acl/acl_dump.h"],
    "acl/acl.h": [
        "acl/acl_base.h",
        "acl/acl_rt.h",
        "acl/acl_op.h",
        "acl/acl_mdl.h",
        "acl/acl_rt_memory_soma.h",
        "acl/error_codes/ge_error_codes.h",
        "acl/error_codes/rt_error_codes.h",
    ],
}
# Headers that no table makes.
WRITTEN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "headers")
# Some programs spell operator headers aclnnop/level2/aclnn_add.h.
OTHER_FOLDER = ("aclnnop/level2", ".")
SYSTEM_INCLUDES = "#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n"
VISIBILITY = """#ifndef ACL_FUNC_VISIBILITY
#define ACL_FUNC_VISIBILITY __attribute__((visibility("default")))
#endif
#ifdef __cplusplus
#define ACL_LAYOUT_IS(type, size) static_assert(sizeof(type) == (size), "layout of " #type)
#else
#define ACL_LAYOUT_IS(type, size) _Static_assert(sizeof(type) == (size), "layout of " #type)
#endif
"""


def guarded(path, includes, body):
    guard = "".join(c if c.isalnum() else "_" for c in path).upper() + "_"
    text = f"// Generated from acl/data; do not edit.\n#ifndef {guard}\n#define {guard}\n\n"
    if not includes:
        text += SYSTEM_INCLUDES
    text += "".join(f'#include {name if name[0] == "<" else chr(34) + name + chr(34)}\n' for name in includes)
    if body:
        text += f'\n#ifdef __cplusplus\nextern "C" {{\n#endif\n\n{body}\n'
        text += "#ifdef __cplusplus\n}\n#endif\n"
    return text + f"\n#endif  // {guard}\n"


def macro(row):
    if row["kind"] == "const":
        return f"static const {row['ctype']} {row['name']} = {row['value']};\n"
    if row["ctype"] == "unsigned int":
        return f"#define {row['name']} 0x{row['value']:08X}U\n"
    if row["ctype"] == "unsigned long":
        return f"#define {row['name']} 0x{row['value']:X}UL\n"
    return f"#define {row['name']} {row['value']}\n"


def enum(row):
    values = "".join(
        f"  {v['name']} = {v['value']},{'  // deprecated' if v.get('deprecated') else ''}\n"
        for v in row["values"]
    )
    tag = row["name"] + " " if row["tagged"] else ""
    return f"typedef enum {tag}{{\n{values}}} {row['name']};\n\n"


def fields(rows, indent):
    text = ""
    for row in rows:
        if "fields" in row:
            inner = fields(row["fields"], indent + "  ")
            name = f" {row['name']}" if row["name"] else ""
            text += f"{indent}{row['type']} {{\n{inner}{indent}}}{name};\n"
        else:
            array = f"[{row['array']}]" if "array" in row else ""
            # An array of no elements at the end stands for as many as follow; ISO C has no such thing.
            extension = "__extension__ " if row.get("array") == 0 else ""
            text += f"{indent}{extension}{row['type']} {row['name']}{array};\n".replace("* ", "*")
    return text


def struct(row):
    body = fields(row["fields"], "  ")
    if row["tagged"]:
        text = f"{row['kind']} {row['name']} {{\n{body}}};\n"
        spelled = f"{row['kind']} {row['name']}"
    else:
        text = f"typedef {row['kind']} {{\n{body}}} {row['name']};\n"
        spelled = row["name"]
    return text + f"ACL_LAYOUT_IS({spelled}, {row['size']});\n\n"


def typedef(row):
    target = row["target"]
    if "(*)" in target:
        return f"typedef {target.replace('(*)', '(*' + row['name'] + ')')};\n"
    return f"typedef {target} {row['name']};\n".replace("* ", "*")


def struct_types(rows):
    for row in rows:
        if "fields" in row:
            yield from struct_types(row["fields"])
        else:
            yield row["type"].replace("const ", "").rstrip("* ")


def in_dependency_order(structs):
    """A struct comes after every struct of its header that one of its members names."""
    by_name = {row["name"]: row for row in structs}
    done, order = set(), []

    def visit(row):
        if row["name"] in done:
            return
        done.add(row["name"])
        for used in struct_types(row["fields"]):
            if used in by_name:
                visit(by_name[used])
        order.append(row)

    for row in structs:
        visit(row)
    return order


def function(row):
    parameters = tables.parameter_list(row["params"], row.get("variadic"))
    returns = row["returns"].replace(" *", "*")
    visibility = "ACL_FUNC_VISIBILITY " if row["header"] not in FURTHER else ""
    return f"{visibility}{returns} {row['name']}({parameters});\n"


def looked_up_function(row, library):
    """A function that does what its library does; without the library it does nothing."""
    names = ", ".join(p["name"] for p in row["params"])
    returns, parameters = row["returns"], tables.parameter_list(row["params"])
    value = "" if returns == "void" else "return "
    nothing = "" if returns == "void" else " : 0"
    call = f"known({names})"
    body = f"  if (known) {call};\n" if returns == "void" else f"  {value}known ? {call}{nothing};\n"
    return (
        f"static inline {returns} {row['name']}({parameters}) {{\n"
        f"  typedef {returns} (*function)({parameters});\n"
        f"  static function known = 0;\n  static int looked = 0;\n"
        f"  if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {{\n"
        f'    void* library = dlopen("{library}", RTLD_LAZY);\n'
        f'    if (library) __atomic_store_n(&known, __extension__(function)dlsym(library, "{row["name"]}"), '
        f'__ATOMIC_RELAXED);\n'
        f"    __atomic_store_n(&looked, 1, __ATOMIC_RELEASE);\n  }}\n{body}}}\n"
    )


def overloads_header(path, rows):
    """C++ functions that give those of C with other arguments; plain C sees what the header includes."""
    body = "".join(
        (f"template <{row['template']}>\n" if "template" in row else "")
        + f"static inline aclError {row['signature']} {{\n  return ::{row['call']};\n}}\n"
        for row in rows
    )
    text = guarded(path, ["acl/acl_rt.h"], "")
    at = text.rindex("\n#endif")
    return f"{text[:at]}\n#ifdef __cplusplus\n\n{body}\n#endif\n{text[at:]}"


def interface_header(path, abi, includes):
    def rows(section):
        return [row for row in abi[section] if row["header"] == path]

    handles, callables = [], []
    for row in rows("typedefs"):
        if row["target"].startswith("enum "):
            continue
        (callables if "(*)" in row["target"] else handles).append(row)
    body = VISIBILITY + "\n" if path == "acl/acl_base_rt.h" else ""
    body += "".join(macro(row) for row in rows("macros") if row["ctype"] != "aclnnStatus") + "\n"
    body += "".join(enum(row) for row in rows("enums"))
    body += "".join(f"struct {row['name']};\n" for row in rows("opaque_structs"))
    body += "".join(typedef(row) for row in handles) + "\n"
    body += "".join(macro(row) for row in rows("macros") if row["ctype"] == "aclnnStatus")
    body += "".join(struct(row) for row in in_dependency_order(rows("structs")))
    body += "".join(typedef(row) for row in callables) + "\n"
    library = LOOKED_UP.get(path)
    body += "".join(looked_up_function(row, library) if library else function(row)
                    for row in rows("functions"))
    return guarded(path, includes, body)


def operator_declaration(op):
    args = ", ".join(f"{arg['ctype']} {arg['name']}" for arg in op["args"])
    separator = ", " if args else ""
    marks = {"in": "in", "out": "out", "inout": "in and out"}
    notes = "".join(
        f"//   {arg['name']}: {marks[arg['dir']]}{', optional' if arg.get('optional') else ''}\n"
        for arg in op["args"]
    )
    # One operator repeats its arguments in the second phase.
    launch_args = args + separator if op.get("exec_signature") else ""
    names = ["GetWorkspaceSize"] + ["GetMaxWorkspaceSize"] * (op["op"] in tables.max_workspace())
    first_phases = "".join(
        f"ACL_FUNC_VISIBILITY aclnnStatus {op['op']}{name}(\n"
        f"    {args}{separator}uint64_t* workspaceSize, aclOpExecutor** executor);\n"
        for name in names
    )
    return (
        f"// {op['op']} ({op['domain']}{', experimental' if op.get('experimental') else ''})\n{notes}"
        f"{first_phases}"
        f"ACL_FUNC_VISIBILITY aclnnStatus {op['op']}(void* workspace, uint64_t workspaceSize, "
        f"aclOpExecutor* executor,\n    {launch_args}aclrtStream stream);\n\n"
    )


def host_function(row):
    parameters = ", ".join(f"{arg['ctype']} {arg['name']}" for arg in row["args"])
    return f"ACL_FUNC_VISIBILITY aclnnStatus {row['function']}({parameters});\n\n"


def written_headers():
    """Headers that are written by hand, by their path in INCLUDE_DIR."""
    result = {}
    for folder, _, files in os.walk(WRITTEN):
        for name in files:
            path = os.path.join(folder, name)
            with open(path) as file:
                result[os.path.relpath(path, WRITTEN)] = file.read()
    return result


def operator_headers(operators):
    declared, gathered = {}, {}
    for op in operators:
        declared.setdefault(op["header"], []).append(op)
        for name in op.get("also_in", []):
            gathered.setdefault(name, []).append("aclnnop/" + op["header"])
    on_host = {}
    for row in tables.host_functions():
        on_host.setdefault(row["header"], []).append(row)
    result = {}
    for name in sorted(set(declared) | set(gathered) | set(on_host)):
        path = "aclnnop/" + name
        includes = ["aclnn/aclnn_base.h"] + sorted(set(gathered.get(name, [])) - {path})
        body = "".join(host_function(row) for row in on_host.get(name, []))
        body += "".join(operator_declaration(op) for op in declared.get(name, []))
        result[path] = (includes, body)
    return result


def main():
    operator_files = operator_headers(tables.operators())
    if sys.argv[1] == "--list":
        paths = [*INCLUDES, *FURTHER, OVERLOADS, *GATHERING, *operator_files, *written_headers()]
        print(";".join(paths), end="")
        return
    abi = tables.abi()
    directory = sys.argv[1]

    def write(path, text):
        tables.write_if_changed(os.path.join(directory, path), text)

    for path in INCLUDES:
        write(path, interface_header(path, abi, INCLUDES[path]))
    further = tables.further()
    for path in FURTHER:
        write(path, interface_header(path, further, FURTHER[path]))
    write(OVERLOADS, overloads_header(OVERLOADS, tables.overloads()))
    for path, includes in GATHERING.items():
        write(path, guarded(path, includes, ""))
    for path, (includes, body) in operator_files.items():
        write(path, guarded(path, includes, body))
    for path, text in written_headers().items():
        write(path, text)
    link = os.path.join(directory, OTHER_FOLDER[0])
    if not os.path.islink(link):
        os.symlink(OTHER_FOLDER[1], link)


main()
