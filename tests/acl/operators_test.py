#!/usr/bin/env python3
"""The tables of operators in meaning/ say each fact once; that of the ACL interface speaks of what exists.

Its table has all operators that draw random numbers. An operator draws them if it takes a seed
(acl/data/aclnn_ops.json). The seed is a number of the host, or a tensor.
"""
import fnmatch
import os
import re
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "acl", "generate"))
import tables  # noqa: E402

# Operators that take a seed and draw nothing, and why.
DRAWS_NOTHING = {
    "aclnnFlashAttentionScoreGradV4": "it makes the mask of the forward operator again, from the seed of that one",
}

# Operators that find the other ranks by a tensor, which some other call made.
COMMUNICATES_BY_TENSOR = ("aclnnMoeDistributeCombineV5",)

ROW = re.compile(r"\{(\.name = [^;]*?)\},\n")
TABLES = (("acl_operators.h", "kAclOperators"), ("torch_operators.h", "kTorchOperators"))


def text_of(header):
    with open(os.path.join(ROOT, "meaning", header), encoding="utf-8") as file:
        return file.read()


def rows(header="acl_operators.h", name="kAclOperators"):
    """The rows of a table, each as its columns."""
    table = text_of(header).split(name + "[] = {\n", 1)[1].split("\n};\n", 1)[0] + "\n"
    found = []
    for text in ROW.findall(table):
        columns = dict(re.findall(r"\.(\w+) = (\{[^}]*\}|\"[^\"]*\"|[^,]+)", " ".join(text.split())))
        found.append({name: value.strip().strip('"') for name, value in columns.items()})
    return found


class Tables(unittest.TestCase):
    def test_every_row_is_read(self):
        for header, name in TABLES:
            with self.subTest(header=header):
                self.assertEqual(len(rows(header, name)), text_of(header).count(".name = \""))

    def test_no_row_hides_a_later_one(self):
        for header, name in TABLES:
            before = []
            for row in rows(header, name):
                with self.subTest(row=row["name"]):
                    hidden = [other["name"] for other in before if fnmatch.fnmatchcase(row["name"], other["name"])
                              and other.get("overload") in (None, row.get("overload"))]
                    self.assertEqual(hidden, [])
                before.append(row)


class AclOperators(unittest.TestCase):
    def setUp(self):
        self.rows = rows()
        self.operators = {op["op"]: op for op in tables.operators()}
        self.functions = {function["name"] for function in tables.abi()["functions"]}

    def test_each_row_names_something_that_exists(self):
        for row in self.rows:
            with self.subTest(row=row["name"]):
                names = self.functions if row["name"].startswith("aclrt") else self.operators
                if not row["name"].startswith("Hccl"):  # no table has these
                    self.assertNotEqual(fnmatch.filter(names, row["name"]), [])

    def test_exactly_the_operators_with_a_seed_draw_numbers(self):
        seeds = {}
        for name, op in self.operators.items():
            kinds = [arg["kind"] for arg in op["args"] if arg["name"].startswith("seed") and arg["dir"] == "in"]
            if kinds and name not in DRAWS_NOTHING:
                seeds[name] = "Randomness::kDeviceSeed" if "tensor" in kinds else "Randomness::kHostSeed"
        said = {row["name"]: row["randomness"] for row in self.rows if "randomness" in row}
        self.assertEqual(said, seeds)
        self.assertGreater(len(seeds), 20)

    def test_exactly_the_operators_that_take_a_group_communicate(self):
        patterns = [row["name"] for row in self.rows if row.get("communicates") == "true"]
        for name, op in self.operators.items():
            groups = [arg for arg in op["args"] if arg["kind"] == "string" and arg["name"].startswith("group")]
            with self.subTest(operator=name):
                fits = any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
                self.assertEqual(fits, bool(groups) or name in COMMUNICATES_BY_TENSOR)

    def test_an_operator_that_overwrites_works_in_place_on_its_first_argument(self):
        overwriting = [row["name"] for row in self.rows if row.get("overwrites") == "true"]
        self.assertIn("aclnnInplaceCopy", overwriting)
        for name in overwriting:
            with self.subTest(operator=name):
                self.assertEqual([arg["dir"] for arg in self.operators[name]["args"]].index("inout"), 0)

    def test_conditions_are_about_arguments_that_the_operator_has(self):
        for row in self.rows:
            if "random_if" in row:
                argument = row["random_if"].split('"')[1]
                with self.subTest(row=row["name"]):
                    self.assertIn(argument, [arg["name"] for arg in self.operators[row["name"]]["args"]])


if __name__ == "__main__":
    unittest.main()
