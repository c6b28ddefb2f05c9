#!/usr/bin/env python3
"""A file of an inner folder of analyzer/ or replayer/ defines its things in the namespace of its folder.

replayer/script/ has the namespace acltape::replayer::script. The rooms of the ground, on which the inner
folders stand, are the exception: their files share the namespace of the outer folder. A file may open
namespaces inside of it, may declare in front what other folders define (a line that ends in a semicolon),
and may say with `namespace acltape::storage` how a type of storage/ is printed. Each other namespace is printed as
FILE:LINE.
"""
import os
import re
import tempfile
import unittest

from source_text import ROOT, code_of, read, source_files

FOLDERS = ("analyzer", "replayer")
GROUND = ("analyzer/calls", "analyzer/acl", "analyzer/steps", "analyzer/program",
          "replayer/device", "replayer/values", "replayer/engine")
NAMESPACE = re.compile(r"^(?:inline\s+)?namespace\s+([\w:]+)\s*\{(?P<rest>.*)$", re.M)
# A type or a function that is declared and not defined, alone between the braces.
DECLARED = re.compile(r"\s*(?:(?:class|struct|enum class)\s+\w+(?:\s*:\s*\w+)?;\s*)+\}")


def namespace_of(path):
    """Returns the namespace of a file's folder."""
    folder = os.path.dirname(path)
    if folder in GROUND:
        folder = os.path.dirname(folder)
    return "::".join(["acltape"] + folder.split(os.sep))


def find_strangers(root=ROOT):
    """A line for each namespace that a file opens and that is not its folder's."""
    strangers = []
    for path in source_files(root, FOLDERS):
        code = code_of(read(path, root))
        own = namespace_of(path)
        depth = 0
        position = 0
        for match in NAMESPACE.finditer(code):
            depth += code.count("{", position, match.start()) - code.count("}", position, match.start())
            position = match.start()
            name = match.group(1)
            if depth > 0 or name == own or name.startswith(own + "::") or name == "acltape::storage":
                continue
            if DECLARED.match(code, match.start("rest")):
                continue
            line = code.count("\n", 0, match.start()) + 1
            strangers.append(f"{path}:{line}: {name} is not {own}")
    return strangers


class Namespaces(unittest.TestCase):
    def test_each_file_defines_in_the_namespace_of_its_folder(self):
        strangers = find_strangers()
        self.assertEqual(strangers, [], "\n" + "\n".join(strangers))

    def test_namespaces_are_seen(self):
        """The check is blind without them."""
        files = source_files(ROOT, FOLDERS)
        seen = [path for path in files if path.endswith(".h") and NAMESPACE.search(code_of(read(path)))]
        headers = [path for path in files if path.endswith(".h")]
        self.assertGreater(len(seen), 0.95 * len(headers))


class PlantedNamespaces(unittest.TestCase):
    """The check finds what it is for, and nothing else."""

    def strangers(self, text):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "replayer", "script"))
            with open(os.path.join(root, "replayer", "script", "step.h"), "w") as file:
                file.write(text)
            return find_strangers(root)

    def test_a_definition_in_another_namespace_is_named_with_file_and_line(self):
        self.assertEqual(self.strangers("#pragma once\nnamespace acltape::replayer {\nclass A { int a; };\n}\n"),
                         ["replayer/script/step.h:2: acltape::replayer is not acltape::replayer::script"])

    def test_declarations_of_other_folders_and_inner_namespaces_are_allowed(self):
        self.assertEqual(self.strangers(
            "namespace acltape::replayer {\nclass A;\nstruct B;\n}  // namespace acltape::replayer\n"
            "namespace acltape::replayer::script {\nnamespace inner {\nint a;\n}\nnamespace {\n}\n}\n"), [])


if __name__ == "__main__":
    unittest.main()
