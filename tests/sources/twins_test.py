#!/usr/bin/env python3
"""No two files of a library define a type of one name in one namespace.

Such twins have equal symbols. The linker keeps one definition of an inline member for both, so that
a program may run the constructor of the other type (the one-definition rule, [basic.def.odr]).
Types in anonymous namespaces have no symbols that other files see, and are left out.
"""
import collections
import os
import re
import tempfile
import unittest

from source_text import ROOT, code_of, read, source_files

# These match the text between a brace or semicolon and the next opening brace, where a namespace or
# a type begins.
NAMESPACE = re.compile(r"^(?:inline\s+)?namespace(?:\s+(?P<name>[\w:]+))?\s*$")
TYPE = re.compile(
    r"^(?:template\s*<.*>\s*)?(?:enum\s+(?:class|struct)|class|struct|union|enum)\s+"
    r"(?:\[\[[^\]]*\]\]\s*|alignas\s*\([^)]*\)\s*|__attribute__\s*\(\(.*?\)\)\s*|[A-Z_]{4,}\s+)*"
    r"(?P<name>[A-Za-z_]\w*(?:::\w+)*\s*(?:<[^{]*>)?)\s*(?:final\s*)?(?::(?!:).*)?$", re.S)


def defined_types(text):
    """Qualified names of the types that a file defines at namespace scope, each with its line."""
    code = code_of(text)
    types = []
    scopes = []  # a namespace's name; "" when anonymous; None: no namespace
    start = 0
    for at, symbol in ((m.start(), m.group()) for m in re.finditer(r"[{};]", code)):
        head = code[start:at].strip()
        start = at + 1
        if symbol == "}" and scopes:
            scopes.pop()
        if symbol != "{":
            continue
        namespace = NAMESPACE.match(head)
        if namespace:
            scopes.append(namespace.group("name") or "")
            continue
        if re.fullmatch(r"extern\s*", head):  # "C", which code_of has blanked out
            scopes.append("::")
            continue
        found = TYPE.match(head)
        if found and None not in scopes and "" not in scopes:
            name = re.sub(r"\s+", "", found.group("name"))
            qualified = "::".join([scope for scope in scopes if scope != "::"] + [name])
            types.append((qualified, code.count("\n", 0, at) + 1))
        scopes.append(None)
    return types


def library_of(path, root=ROOT):
    """The nearest folder with a CMakeLists.txt: what lies below is linked together."""
    folder = os.path.dirname(path)
    while folder and not os.path.exists(os.path.join(root, folder, "CMakeLists.txt")):
        folder = os.path.dirname(folder)
    return folder


def find_twins(root=ROOT, folders=None):
    """A line for each type that several files of a library define."""
    places = collections.defaultdict(list)
    for path in source_files(root, folders) if folders else source_files(root):
        if path.endswith(".c"):
            continue
        for name, line in defined_types(read(path, root)):
            places[library_of(path, root), name].append((path, line))
    return [f"{name} is defined in " + " and in ".join(f"{path}:{line}" for path, line in found)
            for (_, name), found in sorted(places.items())
            if len({path for path, _ in found}) > 1]


class Twins(unittest.TestCase):
    def test_no_type_of_a_library_has_a_twin(self):
        twins = find_twins()
        self.assertEqual(twins, [], "\nName each for what it is:\n" + "\n".join(twins))

    def test_types_are_seen(self):
        """The check is blind without them."""
        found = {name for path in ("analyzer/diff/matching.h", "analyzer/metrics/metrics.h",
                                   "storage/error.h")
                 for name, _ in defined_types(read(path))}
        for name in ("acltape::analyzer::diff::Matching", "acltape::analyzer::metrics::TensorMetrics",
                     "acltape::ErrorKind", "acltape::Error"):
            self.assertIn(name, found)


class PlantedTwins(unittest.TestCase):
    """The check finds what it is for, and nothing else."""

    def twins(self, *files):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "library", "inner"))
            open(os.path.join(root, "library", "CMakeLists.txt"), "w").close()
            for i, text in enumerate(files):
                with open(os.path.join(root, "library", "inner", f"file{i}.h"), "w") as file:
                    file.write(text)
            return find_twins(root, ("library",))

    def test_a_planted_twin_is_named_with_both_places(self):
        first = "namespace a {\nnamespace b {\nclass Twin final : public Base {};\n}\n}\n"
        second = "// class Other {}\nnamespace a::b {\ntemplate <typename T>\nstruct Twin { int x; };\n}"
        self.assertEqual(self.twins(first, second),
                         ["a::b::Twin is defined in library/inner/file0.h:3 and in "
                          "library/inner/file1.h:4"])

    def test_enumerations_are_types(self):
        self.assertEqual(len(self.twins("enum class Kind : int { kA };", "enum Kind { kB };")), 1)

    def test_what_has_no_symbol_of_that_name_is_no_twin(self):
        definition = "struct Twin { int x; };"
        for other in ("class Twin;",
                      "namespace { struct Twin {}; }",
                      "namespace a { namespace { struct Twin {}; } }",
                      "struct Outer { struct Twin {}; };",
                      "void F() { struct Twin {}; }",
                      "namespace a { struct Twin {}; }",
                      "/* struct Twin {}; */ const char* t = \"struct Twin {\";",
                      "Twin Make() { return {}; }"):
            with self.subTest(other=other):
                self.assertEqual(self.twins(definition, other), [])


if __name__ == "__main__":
    unittest.main()
