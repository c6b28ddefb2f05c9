"""What the functions of the ACL interface mean: acl/data/meaning.json with names turned into positions.

usage: meaning.py tables DIRECTORY   writes analyzer/calls/acl_functions.h and storage/acl_barriers.h below it
       meaning.py page FILE          writes docs/interface_functions.md

Each ends with one sentence where the file names what acl_abi.json does not have, or lacks a function.
"""

import json
import os
import sys

import tables

# The functions that the recorder wraps, by how their names begin.
WRAPPED = ("aclrt", "aclmdlRI", "aclInit", "aclFinalize", "Hccl")
COLUMNS = {
    "kinds": {"kind", "replay", "is", "capture", "refused", "code", "reason"},
    "variants": {"variant", "says", "capture"},
    "effects": {"effect", "says", "is"},
    "prefixes": {"prefix", "kind", "lasting"},
    "reasons": {"reason", "says"},
    "functions": {"name", "kind", "variant", "stream", "object", "detail", "done", "barrier",
                  "arguments", "further", "effect", "lock", "lasting", "reason"},
}
KIND_WORDS = ("waits", "varies", "work", "task", "copy", "plane")  # in the order of AclKindFacts
WORDS = "4 * "  # begins a number of bytes that a parameter tells in words
LEFT_OUT = ("left_out", "collective")  # kinds of calls that a replay leaves out, always or in graphs
TIMES = " * "  # between parameters: elements, the type of one, and for a collective the communicator
PAGE = "docs/interface_functions.md"


def fail(sentence):
    raise SystemExit(f"acl/data/meaning.json: {sentence}")


def size_parameters(size):
    """The parameters that tell how many bytes an argument has."""
    if isinstance(size, int):
        return []
    if isinstance(size, dict):
        return next(iter(size.values()))
    return size if isinstance(size, list) else size.removeprefix(WORDS).split(TIMES)


def by_name(rows, key):
    found = {row[key]: row for row in rows}
    if len(found) != len(rows):
        names = [row[key] for row in rows]
        fail(f"{next(name for name in names if names.count(name) > 1)} has two rows")
    return found


def read_data():
    with open(os.path.join(tables.DATA, "meaning.json")) as file:
        return json.load(file)


class Meaning:
    """The rows of meaning.json by name, checked against the functions of the interface."""

    def __init__(self, data=None, functions=None):
        data = data or read_data()
        functions = functions or tables.recorded()
        self.parameters = {f["name"]: [p["name"] for p in f["params"]] for f in functions}
        self.numbers = {macro["name"]: macro["value"] for macro in tables.abi()["macros"]}
        self.wrapped = [f for f in functions
                        if f["name"].startswith(WRAPPED) and f["group"] != "aclnn"]
        for table, columns in COLUMNS.items():
            for row in data[table]:
                for column in row.keys() - columns:
                    fail(f"the table {table} has no column {column}")
        self.kinds = by_name(data["kinds"], "kind")
        self.variants = by_name(data["variants"], "variant")
        self.effects = by_name(data["effects"], "effect")
        self.prefixes = data["prefixes"]
        self.reasons = by_name(data["reasons"], "reason")
        self.functions = by_name(data["functions"], "name")
        self.unknown = data["unknown"]
        for row in data["kinds"]:
            if row.get("code", "ACL_SUCCESS") not in self.numbers:
                fail(f"{row['code']} is no code of acl_abi.json")
        for row in data["prefixes"] + data["functions"]:
            if row["kind"] not in self.kinds:
                fail(f"{row['kind']} is no kind")
        for row in data["functions"]:
            self._check(row)
        for name in self.unknown:
            if name not in self.parameters:
                fail(f"{name} is no function of acl_abi.json")
            if name in self.functions or self.prefix_of(name):
                fail(f"{name} is unknown and has a meaning too")
        for name in self.unmentioned():
            fail(f"{name} has neither a row nor a prefix; say what it means, or that it is unknown")

    def _check(self, row):
        name = row["name"]
        if name not in self.parameters:
            fail(f"{name} is no function of acl_abi.json")
        if row.get("variant", "none") not in self.variants:
            fail(f"{row['variant']} is no variant")
        if "effect" in row and row["effect"][0] not in self.effects:
            fail(f"{row['effect'][0]} is no effect")
        if (row["kind"] in LEFT_OUT) != ("reason" in row):
            fail(f"{name} needs a reason if it is left out, and only then")
        if "reason" in row and row["reason"] not in self.reasons:
            fail(f"{row['reason']} is no reason")
        if row.get("barrier") and "reason" not in self.kinds[row["kind"]]:
            fail(f"{name} ends a region, but the kind {row['kind']} has no reason")
        for column in ("stream", "object", "detail"):
            if column in row:
                self.position(name, row[column])
        for parameter, how in row.get("arguments", {}).items():
            sizes = size_parameters(how[1]) if isinstance(how, list) else []
            for named in (parameter, *sizes):
                self.position(name, named)
        self.effect(name)

    def position(self, name, parameter):
        """The position of a parameter of a function, from 0."""
        if parameter not in self.parameters[name]:
            fail(f"{name} has no parameter {parameter}")
        return self.parameters[name].index(parameter)

    def code(self, kind):
        """The number of the code with which a call of the kind is refused."""
        return self.numbers[kind["code"]]

    def prefix_of(self, name):
        """The row that speaks of a name by how it begins; {}: none does."""
        return next((row for row in self.prefixes if name.startswith(row["prefix"])), {})

    def unmentioned(self):
        """Functions that the recorder wraps and of which the file says nothing."""
        return [f["name"] for f in self.wrapped if f["name"] not in self.functions
                and f["name"] not in self.unknown and not self.prefix_of(f["name"])]

    def row(self, name):
        """The row of a function, or what its prefix says."""
        return self.functions.get(name) or self.prefix_of(name)

    def argument(self, name, parameter):
        """How an argument is recorded: a role, or [direction, bytes]; None: its type tells."""
        return self.row(name).get("arguments", {}).get(parameter)

    def reason(self, name):
        """Why a replay cannot give a call of the function back; empty: it can."""
        row = self.row(name)
        return self.reasons[row["reason"]]["says"] if "reason" in row else ""

    def effect(self, name):
        """The effect of a call and the positions of the parameters that it needs."""
        effect, *parameters = self.row(name).get("effect", ["none"])
        return effect, [self.position(name, parameter) for parameter in parameters]

    def has(self, name, property_):
        """True if the row of a function, or else its effect, says so; None: neither does."""
        row = self.row(name)
        if property_ in row:
            return row[property_]
        return property_ in self.effects[row["effect"][0]]["is"] if "effect" in row else None


def constant(name):
    """event_wait as a C++ enumerator: kEventWait."""
    return "k" + "".join(part.capitalize() for part in name.split("_"))


def function_text(meaning, row, name=None):
    at = [meaning.position(name, row[column]) if column in row else -1
          for column in ("stream", "object", "detail")]
    return (f'{{"{name or ""}", AclCallKind::{constant(row["kind"])}, {at[0]}, {at[1]}, {at[2]}, '
            f'{row.get("done", 0)}, AclVariant::{constant(row.get("variant", "none"))}, '
            f'"{meaning.reason(name) if name else ""}"}}')


def analyzer_table(meaning):
    def flag(kind, word):
        return "true" if word in kind["is"] else "false"

    kinds = "".join(
        f'    {{AclCallKind::{constant(kind["kind"])}, '
        + "".join(f"{flag(kind, word)}, " for word in KIND_WORDS)
        + f'"{kind.get("capture", "")}", "{kind.get("refused", "")}"}},\n'
        for kind in meaning.kinds.values())
    variants = "".join(f'    {{AclVariant::{constant(row["variant"])}, "{row.get("capture", "")}"}},\n'
                       for row in meaning.variants.values())
    functions = "".join(f"    {function_text(meaning, row, name)},\n"
                        for name, row in sorted(meaning.functions.items()))
    prefixes = "".join(f'    {{"{row["prefix"]}", {function_text(meaning, row)}}},\n'
                       for row in meaning.prefixes)
    return (
        "// Generated from acl/data/meaning.json; do not edit.\n#pragma once\n\n"
        '#include "analyzer/calls/acl_calls.h"\n\nnamespace acltape::analyzer {\n\n'
        f"constexpr AclKindFacts kAclKinds[] = {{\n{kinds}}};\n\n"
        f"constexpr AclVariantFacts kAclVariants[] = {{\n{variants}}};\n\n"
        f"// By name.\nconstexpr AclFunction kAclFunctions[] = {{\n{functions}}};\n\n"
        "struct AclPrefix {\n  std::string_view prefix;\n  AclFunction function;\n};\n"
        f"constexpr AclPrefix kAclPrefixes[] = {{\n{prefixes}}};\n\n}}  // namespace acltape::analyzer\n"
    )


def storage_table(meaning):
    rows = [(row["name"], meaning.kinds[row["kind"]]) for row in meaning.functions.values()
            if row.get("barrier")]
    rows = "".join(f'    {{"{name}", {meaning.code(kind)}, "{kind["reason"]}"}},\n' for name, kind in rows)
    return (
        "// Generated from acl/data/meaning.json; do not edit.\n#pragma once\n\n"
        "#include <cstdint>\n#include <string_view>\n\nnamespace acltape::storage {\n\n"
        "struct AclBarrier {\n  std::string_view name;\n  int64_t code;\n  std::string_view reason;\n};\n"
        f"constexpr AclBarrier kAclBarriers[] = {{\n{rows}}};\n\n}}  // namespace acltape::storage\n"
    )


PAGE_TEXT = """# Interface functions

What acltape makes of a call of the ACL interface. `acl/data/meaning.json` says it in one row for each function. The
recorder's wrappers, the replay, lint and this page take it from there. After a change of the file
`python3 acl/generate/meaning.py page {page}` writes the page again.

"Memory and handles" is what the recorder notes of a call besides its arguments. "In a capture" names the rule of lint
that is about the call ([lint_rules.md](lint_rules.md#rules)); further rules are about the order of calls. "Ends a
region": the view `capture_breaks` has the call, with this code.

| function | a replay | memory and handles | in a capture |
|---|---|---|---|
{rows}

## Without a row

Operators, and functions that only ask or describe, are known by how their names begin. The first row that fits counts.

| names that begin with | a replay | functions |
|---|---|---|
{prefixes}

## What cannot be given back

These are recorded. A replay leaves them out and reports ACL-LEFT-OUT with the reason; results that depend on them may
differ from the recording.

| function | why |
|---|---|
{left_out}

## Not recorded

Calls of channels and queues (`acltdt...`), of dumps (`acldump...`, `aclmdl...Dump`, `aclop...DumpArgs`) and of the
platform (`aclplatform...`) are not in a recording, because they change nothing on the device; a replay does without
them. Data of channels, and of queues as far as they give it out, is host memory. The exception is a message that
`acltdtDequeueData` takes into device memory: it is recorded, and replayed, as the `aclrtMemcpy` from the host that it
is.

## Unknown

{unknown}
"""

ALL_KNOWN = "Every function that is recorded has a meaning."
UNKNOWN = """Nobody has said what these mean. They are recorded; a replay leaves them out and reports ACL-UNKNOWN:
{names}."""


def bytes_text(size):
    if isinstance(size, dict):
        (part, (matrix, *_)), = size.items()
        return f"this rank's {part} of `{matrix}`"
    if isinstance(size, list) and len(size) == 4:
        return f"blocks of `{size[0]}` elements"
    if isinstance(size, list):
        pitch, width, height = size
        return f"`{height}` rows of `{width}` bytes, `{pitch}` apart"
    return f"{size} bytes" if isinstance(size, int) else f"`{size}` bytes"


def effect_text(meaning, row):
    ways = {"in": "reads", "out": "writes", "inout": "reads and writes"}
    parts = [f"{ways[how[0]]} `{name}`, {bytes_text(how[1])}"
             for name, how in row.get("arguments", {}).items() if isinstance(how, list) and how[0] in ways]
    parts += [f"reads or writes the memory of each part of `{name}`"
              for name, how in row.get("arguments", {}).items() if how[0] == "items"]
    if "effect" in row:
        effect, *parameters = row["effect"]
        says = meaning.effects[effect]["says"]
        names = ", ".join(f"`{name}`" for name in parameters)
        parts.insert(0, says if parts or not names else f"{says}: {names}")
    if "further" in row:
        names = ", ".join(f"`{declared.split()[-1]}`" for declared in row["further"])
        parts.append(f"as further arguments: {names}")
    return "; ".join(parts)


def page_row(meaning, row):
    kind, variant = meaning.kinds[row["kind"]], meaning.variants[row.get("variant", "none")]
    replay = ", ".join(text for text in (kind["replay"], variant.get("says")) if text)
    rules = [owner["capture"] for owner in (kind, variant) if "capture" in owner]
    if row.get("barrier"):
        rules.append(f"ends a region ({meaning.code(kind)})")
    return f"| `{row['name']}` | {replay} | {effect_text(meaning, row)} | {', '.join(rules)} |"


def wrapped_lines(words, width=118):
    lines, line = [], ""
    for word in words:
        if line and len(line) + len(word) + 1 > width:
            lines.append(line)
            line = ""
        line += (" " if line else "") + word
    return "\n".join(lines + [line])


def page_text(meaning):
    def count(row):
        return sum(name not in meaning.functions and meaning.prefix_of(name) is row
                   for name in meaning.parameters)

    prefixes = [f"| `{row['prefix']}` | {meaning.kinds[row['kind']]['replay']} | "
                + ("all operators" if row["kind"] == "operator" else str(count(row))) + " |"
                for row in meaning.prefixes]
    names = wrapped_lines(f"`{name}`," for name in meaning.unknown).rstrip(",")
    left_out = [f"| `{name}` | {meaning.reason(name)} |" for name in meaning.functions if meaning.reason(name)]
    return PAGE_TEXT.format(
        page=PAGE, rows="\n".join(page_row(meaning, row) for row in meaning.functions.values()),
        prefixes="\n".join(prefixes), left_out="\n".join(left_out),
        unknown=UNKNOWN.format(names=names) if names else ALL_KNOWN)


def main():
    what, place = sys.argv[1:]
    meaning = Meaning()
    if what == "page":
        tables.write_if_changed(place, page_text(meaning))
        return
    tables.write_if_changed(os.path.join(place, "analyzer", "calls", "acl_functions.h"), analyzer_table(meaning))
    tables.write_if_changed(os.path.join(place, "storage", "acl_barriers.h"), storage_table(meaning))


if __name__ == "__main__":
    main()
