#!/usr/bin/env python3
"""A thing that has one owner is written nowhere else.

Each row names a thing, a pattern that tells where it is made, and the files that may make it. A place
elsewhere is printed as FILE:LINE.
"""
import os
import re
import tempfile
import unittest

from source_text import FOLDERS, read, source_files

# bench/storage_rate.cpp measures against SQLite alone.
OWNERS = (
    ("a statement of SQL is prepared by storage::Statement", re.compile(r"\bsqlite3_prepare"),
     {"storage/database.cpp", "bench/storage_rate.cpp"}),
    ("bits are mixed by base/hash.h",
     re.compile(r"0x9E3779B97F4A7C15|0xBF58476D1CE4E5B9|0xCBF29CE484222325|14695981039346656037", re.I),
     {"base/hash.h"}),
    ("a median is taken by base/median.h", re.compile(r"\b(?:double|T|float) \w*Median\w*\(std::vector|size\(\) / 2, "),
     {"base/median.h"}),
    ("a value of a table is a storage::Cell", re.compile(r"\busing Cell = "), {"storage/cell.h"}),
    ("rows of one process are picked by storage::ProcessFilter", re.compile(r"process_id = \{\}"), set()),
)
SEARCHED = [folder for folder in FOLDERS if folder != "tests"]


def find_elsewhere(root=None):
    found = []
    for path in source_files(*([root] if root else []), folders=SEARCHED):
        text = read(path, *([root] if root else []))
        for what, pattern, owners in OWNERS:
            if path in owners:
                continue
            found += [f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {what}"
                      for match in pattern.finditer(text)]
    return found


class Owners(unittest.TestCase):
    def test_each_has_one_place(self):
        self.assertEqual(find_elsewhere(), [])

    def test_owners_make_what_they_own(self):
        for what, pattern, owners in OWNERS:
            for path in owners:
                self.assertRegex(read(path), pattern, what)


class Planted(unittest.TestCase):
    def test_a_second_place_is_named_with_file_and_line(self):
        with tempfile.TemporaryDirectory() as root:
            os.mkdir(os.path.join(root, "analyzer"))
            with open(os.path.join(root, "analyzer", "planted.cpp"), "w") as file:
                file.write("int a;\nuint64_t b = c * 0x9e3779b97f4a7c15u;\nsqlite3_prepare_v2(d);\n")
            self.assertEqual(find_elsewhere(root),
                             ["analyzer/planted.cpp:3: a statement of SQL is prepared by storage::Statement",
                              "analyzer/planted.cpp:2: bits are mixed by base/hash.h"])


if __name__ == "__main__":
    unittest.main()
