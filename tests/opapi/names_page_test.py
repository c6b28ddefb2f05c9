#!/usr/bin/env python3
"""docs/operators_by_name.md lists the operators that the soft device knows by name, each once and no other."""
import os
import re
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "runtime", "device", "by_name")
TABLE = os.path.join(ROOT, "runtime", "device", "exports", "operator_by_name.cpp")
PAGE = os.path.join(ROOT, "docs", "operators_by_name.md")


def read(path):
    with open(path) as file:
        return file.read()


def known_names():
    """The names in the rows of all tables."""
    files = [TABLE] + sorted(os.path.join(FOLDER, name) for name in os.listdir(FOLDER) if name.endswith(".cpp"))
    return {name for path in files for name in re.findall(r'\{"([A-Z][A-Za-z0-9]+)",\s', read(path))}


def listed_names():
    """The names in the second column of the page's table, in its order."""
    rows = [row.split(" | ") for row in read(PAGE).splitlines() if row.startswith("| ")]
    return [name for row in rows[1:] for name in re.findall(r"`(\w+)`", row[1])]


class NamesPage(unittest.TestCase):
    def test_the_page_lists_what_the_device_knows(self):
        self.assertGreater(len(known_names()), 150)
        self.assertEqual(sorted(listed_names()), sorted(known_names()))


if __name__ == "__main__":
    unittest.main()
