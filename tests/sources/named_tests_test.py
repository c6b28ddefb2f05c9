#!/usr/bin/env python3
"""Tests that a page names exist: `Suite.Test` and `Suite.*` in C++, `folder.Name` for a test of ctest."""
import pathlib
import re
import unittest

from source_text import ROOT

SOURCE = pathlib.Path(ROOT)
PAGES = ("trust.md",)
NAMED = re.compile(r"`(\w+)\.([A-Z]\w+|\*)`")
IN_CPP = re.compile(r"^TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)
LEAST_NAMED = 20


def texts(pattern):
    return [file.read_text() for file in (SOURCE / "tests").rglob(pattern)]


class NamedTests(unittest.TestCase):
    def test_exist(self):
        in_cpp = {test for text in texts("*.cpp") for test in IN_CPP.findall(text)}
        in_cpp |= {(suite, "*") for suite, _ in in_cpp}
        for page in PAGES:
            named = set(NAMED.findall((SOURCE / "docs" / page).read_text()))
            self.assertGreaterEqual(len(named), LEAST_NAMED, page)
            missing = [f"{suite}.{test}" for suite, test in sorted(named)
                       if (suite, test) not in in_cpp and not self.of_ctest(suite, test)]
            self.assertEqual(missing, [], f"docs/{page} names tests that are not there")

    def of_ctest(self, folder, name):
        if not (SOURCE / "tests" / folder).is_dir():
            return False
        declared = (SOURCE / "tests" / folder / "CMakeLists.txt").read_text()
        return f"NAME {folder}.{name}" in declared or any(
            f"class {name}(" in file.read_text() for file in (SOURCE / "tests" / folder).glob("*_test.py"))


if __name__ == "__main__":
    unittest.main()
