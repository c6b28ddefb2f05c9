#!/usr/bin/env python3
"""No fact has two owners: no type, no list, no constant, no number of the interface.

No two files of a library define a type of one name in one namespace. Such twins have equal symbols. The
linker keeps one definition of an inline member for both, so that a program may run the constructor of the
other type (the one-definition rule, [basic.def.odr]).
Types in anonymous namespaces have no symbols that other files see, and are left out.

No two files hold lists that share most of their rows, constants of one name with one value, or headers'
constants of one name with two values. No file writes a number of the ACL interface that acl/data has a name
for: generated/meaning/interface_numbers.h has them all. twin_facts.py finds these.
"""
import collections
import os
import re
import tempfile
import unittest

import twin_facts
from source_text import ENDINGS, FOLDERS, ROOT, code_of, read, source_files

# Tests repeat what they expect, and programs of bench/ measure from outside.
PRODUCT = tuple(folder for folder in FOLDERS if folder not in ("bench", "tests"))

# Pairs of lists that are not one fact, or have no common place, and why. A pair that is no twin any more has
# to go.
ALLOWED_LISTS = {
    frozenset({("page/facts.cpp", "kMetaShown"), ("recorder/collector/trace_builder.cpp", "kOwnKeys")}):
        "one says which facts a page shows, and in which order; the other which ones no recorded program may set",
    frozenset({("analyzer/streams/budget.cpp", "kSocs"), ("runtime/device/exports/product.cpp", "kArchitectures")}):
        "the names of products are the vendor's; one has their streams and the other what the soft device answers, "
        "which knows nothing of plans",
    frozenset({("meaning/recorded_values.h", "kElementTypes"),
               ("runtime/device/dump/dump_statistics.cpp", "kNumberTypes")}):
        "the names in the vendor's files of dumps; the soft device knows nothing of traces",
    frozenset({("analyzer/program/queue_collectives.cpp", "kCollectives"), ("runtime/hccl/call.cpp", "kKinds")}):
        "the names are functions of HCCL; one has the operators of PyTorch that call them, the other what they do",
    frozenset({("replayer/acl_level/collective_call.cpp", "kFunctions"), ("runtime/hccl/call.cpp", "kKinds")}):
        "the names are functions of HCCL; one calls them, the other is what they do on the soft device",
    frozenset({("analyzer/program/queue_collectives.cpp", "kCollectives"),
               ("replayer/acl_level/collective_call.cpp", "kFunctions")}):
        "the names are functions of HCCL; one has the operators of PyTorch that call them, the other calls them",
    frozenset({("recorder/collector/left_out.cpp", "kUnrecorded"), ("replayer/redact_words.h", "kLedgerKinds")}):
        "what stays in a redacted trace must not follow by itself from what a recorder writes",
    frozenset({("recorder/collector/soft_findings.cpp", "kKinds"), ("replayer/redact_words.h", "kLedgerKinds")}):
        "what stays in a redacted trace must not follow by itself from what a recorder writes",
}

# Constants of one name and value that are two facts or have no common place, and why.
ALLOWED_CONSTANTS = {
    ("kMillisecond", frozenset({"recorder/collector/record.cpp", "runtime/device/call.h"})):
        "a unit; the recorder does not include the soft device",
}

# Numbers of the interface that a file has to write, and why.
ALLOWED_NUMBERS = {
    ("runtime/device/fault.cpp", "ACL_ERROR_RT_MEMORY_ALLOCATION"): "an example of what a user writes",
    ("runtime/device/fault.cpp", "ACL_ERROR_RT_AICORE_EXCEPTION"): "an example of what a user writes",
}


def product_texts(endings=ENDINGS, folders=PRODUCT):
    """The text of each file of the product by its path."""
    paths = [os.path.relpath(os.path.join(parent, name), ROOT)
             for folder in folders for parent, _, names in os.walk(os.path.join(ROOT, folder))
             for name in names if name.endswith(endings)]
    return {path: read(path) for path in sorted(paths)}

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
    for position, symbol in ((m.start(), m.group()) for m in re.finditer(r"[{};]", code)):
        head = code[start:position].strip()
        start = position + 1
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
            types.append((qualified, code.count("\n", 0, position) + 1))
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


class Facts(unittest.TestCase):
    def hold(self, found, allowed, advice):
        lines = [line for key, line in found if key not in allowed]
        self.assertEqual(lines, [], f"\n{advice}:\n" + "\n".join(lines))
        needless = [reason for row, reason in allowed.items() if row not in {key for key, _ in found}]
        self.assertEqual(needless, [], "no exception is needed any more")

    def test_no_two_files_hold_the_same_list(self):
        self.hold(twin_facts.list_twins(product_texts()), ALLOWED_LISTS,
                  "Give the rows one place, such as a table in meaning/")

    def test_no_constant_is_defined_twice(self):
        self.hold(twin_facts.constant_twins(product_texts()), ALLOWED_CONSTANTS,
                  "Define it in one header, or name each for what it is")

    def test_no_number_of_the_interface_is_copied(self):
        texts = product_texts(ENDINGS + (".py", ".js"), PRODUCT + ("python",))
        self.hold(twin_facts.copied_numbers(texts, twin_facts.interface_codes(), twin_facts.interface_numbers()),
                  ALLOWED_NUMBERS, "Take it from acl/acl.h or generated/meaning/interface_numbers.h")

    def test_the_facts_are_seen(self):
        """The checks are blind without them."""
        texts = product_texts(folders=("meaning", "storage"))
        lists = {rows.name: rows.words for path, text in texts.items() for rows in twin_facts.lists_of(path, text)}
        self.assertIn("aten::bernoulli_", lists["kTorchOperators"])
        self.assertIn("int_list", lists["kValueKindNames"])
        constants = {one.name: one for path, text in texts.items() for one in twin_facts.constants_of(path, text)}
        self.assertEqual((constants["kLeafBit"].value, constants["kLeafBit"].shared), ("4", True))
        self.assertEqual(twin_facts.interface_codes()[107027], "ACL_ERROR_RT_STREAM_CAPTURED")
        self.assertEqual(twin_facts.interface_numbers()["ACL_EVENT_EXTERNAL"], 32)


class PlantedFacts(unittest.TestCase):
    """The checks find what they are for, and nothing else."""

    VIEWS = 'constexpr std::string_view kViews[] = {"aten::_unsafe_view", "aten::lift", "aten::lift_fresh"};\n'

    def lists(self, *texts):
        found = twin_facts.list_twins({f"file{i}.cpp": text for i, text in enumerate(texts)})
        return [line for _, line in found]

    def test_a_list_in_two_files_is_named_with_both_places(self):
        self.assertEqual(self.lists(self.VIEWS, "\n" + self.VIEWS.replace("kViews", "kOthers")),
                         ["kViews in file0.cpp:1 and kOthers in file1.cpp:2 share 3 rows: "
                          "aten::_unsafe_view, aten::lift, aten::lift_fresh"])

    def test_twins_among_lists(self):
        for other in (  # as rows with further columns, and as one of SQL
                'constexpr Row kRows[] = {{"aten::lift", 1}, {"aten::_unsafe_view", 2}, {"aten::lift_fresh", 3},'
                ' {"aten::to", 4}, {"aten::copy", 5}};',
                'constexpr char kSql[] = R"sql(SELECT 1 WHERE name IN (\'aten::_unsafe_view\', \'aten::lift\',\n'
                '\'aten::lift_fresh\'))sql";',
                'database.Execute("... name NOT IN (\'aten::lift_fresh\', \'aten::_unsafe_view\', \'aten::lift\')");'):
            with self.subTest(other=other):
                self.assertEqual(len(self.lists(self.VIEWS, other)), 1)
        modes = 'constexpr const char* kModes[] = {"global", "thread_local", "relaxed"};'
        self.assertEqual(len(self.lists(modes, modes)), 1)

    def test_no_twins_among_lists(self):
        for other in ('constexpr std::string_view kTwo[] = {"aten::lift", "aten::lift_fresh", "aten::to"};',
                      '// ' + self.VIEWS,
                      'Call({"aten::_unsafe_view", "aten::lift", "aten::lift_fresh"});',
                      'constexpr std::string_view kText[] = {"aten::_unsafe_view and lift", "aten::lift_fresh"};'):
            with self.subTest(other=other):
                self.assertEqual(self.lists(self.VIEWS, other), [])
        self.assertEqual(self.lists(self.VIEWS + self.VIEWS.replace("kViews", "kOthers")), [])
        columns = 'constexpr Column kColumns[] = {"min", "max", "mean", "call_id", "place", "bytes"};'
        self.assertEqual(self.lists('constexpr const char* kNames[] = {"min", "max", "mean", "l2"};', columns), [])

    def constants(self, **texts):
        found = twin_facts.constant_twins({name.replace("_h", ".h").replace("_cpp", ".cpp"): text
                                           for name, text in texts.items()})
        return [line for _, line in found]

    def test_a_constant_in_two_files_is_named_with_both_places(self):
        self.assertEqual(self.constants(a_cpp="namespace {\nconstexpr size_t kPiece = 1 << 20;\n}",
                                        b_cpp="void F() { static constexpr uint64_t kPiece = 1'048'576u; }"),
                         ["kPiece is 1048576 in a.cpp:2 and in b.cpp:1"])
        self.assertEqual(len(self.constants(a_h='inline constexpr char kHex[] = "0123";',
                                            b_cpp='constexpr char kHex[] = "0123";')), 1)
        self.assertEqual(len(self.constants(a_cpp="constexpr int kRows = 16, kBytes = 32;",
                                            b_cpp="constexpr int kBytes{32};")), 1)

    def test_a_name_of_two_numbers_in_headers(self):
        self.assertEqual(self.constants(a_h="namespace a {\ninline constexpr int64_t kExternal = 0x20;\n}",
                                        b_h="namespace b {\ninline constexpr uint32_t kExternal = 0x1;\n}"),
                         ["kExternal is 32 in a.h:2 and 1 in b.h:2"])

    def test_no_twins_among_constants(self):
        first = "namespace a { inline constexpr int kMost = 5; }"
        for second in ("namespace b { constexpr int kMost = 6; }", "constexpr int kLeast = 5;",
                       "// constexpr int kMost = 5;", "constexpr int kMost = Other::kMost;",
                       'constexpr char kProgram[] = "constexpr int kMost = 5;";'):
            with self.subTest(second=second):
                self.assertEqual(self.constants(a_h=first, b_cpp=second), [])
        # A constant inside a class or a function is not seen from another header.
        self.assertEqual(self.constants(a_h=first, b_h="struct B { static constexpr int kMost = 6; };"), [])

    def numbers(self, text, path="file.cpp"):
        found = twin_facts.copied_numbers({path: text}, {107027: "ACL_ERROR_RT_STREAM_CAPTURED"},
                                          {"ACL_EVENT_EXTERNAL": 32, "ACL_ERROR_RT_STREAM_CAPTURED": 107027})
        return [line for _, line in found]

    def test_copied_numbers(self):
        captured, external = "ACL_ERROR_RT_STREAM_CAPTURED", "ACL_EVENT_EXTERNAL"
        for path, text, name in (
                ("file.cpp", "constexpr int64_t kStreamNotCaptured = 107027;", captured),
                ("file.cpp", "if (code == 107'027) return;", captured),
                ("file.cpp", 'R"sql(\nSELECT s.signature_id, 107027,\n)sql"', captured),
                ("file.cpp", 'Fail("it captures (107027)");', captured),
                ("file.js", "const CAPTURED = 107027;", captured),
                ("file.py", "CAPTURED = 107027", captured),
                ("file.h", "constexpr int kFlag = 0x20;  // ACL_EVENT_EXTERNAL", external),
                ("file.cpp", "return 32;  // ACL_EVENT_EXTERNAL (rule EVT-19)", external)):
            with self.subTest(text=text):
                line = 2 if "sql" in text else 1
                self.assertEqual(self.numbers(text, path), [f"{path}:{line} writes the number of {name}"])

    def test_no_copied_numbers(self):
        for text in ("// the stream is captured (107027)", "constexpr int kMany = 1070270;", "double x = 107027.5;",
                     "return 207000;", "constexpr int kFlag = 0x10;  // not ACL_EVENT_EXTERNAL", "uint64_t id107027;"):
            with self.subTest(text=text):
                self.assertEqual(self.numbers(text), [])


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
