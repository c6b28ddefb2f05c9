#!/usr/bin/env python3
"""docs/developing.md tells the truth: each recipe applies to this tree, its tests exist, and so does each file that
the page names. scripts/recipes check follows the recipes to their end.
"""
import importlib.machinery
import importlib.util
import pathlib
import re
import shutil
import sys
import unittest

from source_text import ROOT

SOURCE = pathlib.Path(ROOT)
LEAST_RECIPES = 6
LEAST_FILES = 30
TEST = re.compile(r"^\+?TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)
FILTER = re.compile(r"--gtest_filter='([^']+)'")
CTEST = re.compile(r"-R '\^(\w+)\.(\w+)\$'")
# A path of the tree in code: it has a folder that the tree has at its top.
PATH = re.compile(r"`((?:[\w.-]+/)+[\w.-]*)`")


def load_recipes():
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("recipes", str(SOURCE / "scripts" / "recipes"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("recipes", loader))
    loader.exec_module(module)
    return module.recipes()


class Recipes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.recipes = load_recipes()
        cls.page = (SOURCE / "docs" / "developing.md").read_text()

    def test_there_is_one_for_each_kind_of_addition(self):
        self.assertGreaterEqual(len(self.recipes), LEAST_RECIPES)
        for recipe in self.recipes.values():
            self.assertTrue(recipe.patch and recipe.commands, recipe.name)

    @unittest.skipIf(shutil.which("git") is None, "git applies the recipes, and there is none")
    def test_each_still_applies(self):
        for recipe in self.recipes.values():
            done = recipe.apply(SOURCE, "--check")
            self.assertEqual(done.returncode, 0, f"the section of {recipe.name} has to be mended:\n{done.stderr}")

    @unittest.skipIf(shutil.which("git") is None, "git applies the recipes, and there is none")
    def test_one_that_does_not_fit_is_noticed(self):
        recipe = self.recipes["lowering-rule"]
        whole, recipe.patch = recipe.patch, recipe.patch.replace("aclnnLogAddExp(", "aclnnRenamed(")
        self.assertNotEqual(recipe.apply(SOURCE, "--check").returncode, 0)
        recipe.patch = whole

    def test_the_tests_that_each_names_exist(self):
        known = {test for file in (SOURCE / "tests").rglob("*.cpp") for test in TEST.findall(file.read_text())}
        scripts = "\n".join(file.read_text() for file in (SOURCE / "tests").rglob("*_test.py"))
        for recipe in self.recipes.values():
            here = known | set(TEST.findall(recipe.patch))
            names = [name for found in FILTER.findall(recipe.commands) for name in found.split(":")]
            classes = CTEST.findall(recipe.commands)
            self.assertTrue(names or classes, f"{recipe.name} runs no test")
            for name in names:
                # Names of the grid are made of its rows.
                if "/" in name:
                    self.assertIn(f'{{"{name.split("/")[-1]}"', recipe.patch, recipe.name)
                    continue
                pattern = re.compile(re.escape(name).replace(r"\*", ".*"))
                self.assertTrue(any(pattern.fullmatch(".".join(test)) for test in here), f"{recipe.name}: {name}")
            for _, name in classes:
                self.assertIn(f"class {name}(", scripts, recipe.name)

    def test_each_file_that_the_page_names_exists(self):
        made = {path for recipe in self.recipes.values()
                for path in re.findall(r"^\+\+\+ b/(.*)$", recipe.patch, re.MULTILINE)}
        named = [path for path in PATH.findall(self.page) if not path.startswith(("build/", "origin/"))]
        self.assertGreaterEqual(len(named) + len(made), LEAST_FILES)
        missing = [path for path in named if path not in made and not (SOURCE / path).exists()]
        self.assertEqual(missing, [], "docs/developing.md names files that are not there")


if __name__ == "__main__":
    unittest.main()
