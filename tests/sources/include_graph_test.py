#!/usr/bin/env python3
"""The includes between folders are those that docs/architecture.md allows, and make no cycle.

The column "uses" of the page's table of folders is the rule for the folders that have a row there.
Inner folders (analyzer/plan, replayer/script) may include each other in one direction only. Folders that
are libraries (cmake/folder_library.cmake) link those whose headers they include. Each include that breaks
a rule is printed as FILE:LINE.
"""
import collections
import contextlib
import os
import re
import tempfile
import unittest

from source_text import ROOT, read, source_files

PAGE = "docs/architecture.md"

# Includes of one folder in another that close a cycle, and why they are still there. One that closes
# no cycle any more has to go. The page names them under "Principles".
EXCEPTIONS = {
    ("runtime/device", "runtime/device/capture"):
        "a context that ends takes its captures with it, and a model owns its task groups",
}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.M)
# Headers that the build makes, by how their names begin, and the folder that makes them.
GENERATED = (("generated/recorder/agent/", "recorder/agent"), ("generated/recorder/", "recorder/acl"),
             ("generated/", None), ("acl/", "acl"), ("aclnn", "acl"))

# A library of the files of one folder, and the folders that it says it uses.
LIBRARY = re.compile(r"^acltape_folder_library\(([\w/]+)([^)]*)\)", re.M)

Include = collections.namedtuple("Include", "file line target source_folder target_folder")


class Folders:
    """The rows of the table of folders: what each says, and what it may use."""

    def __init__(self, page):
        table = page.split("\n## Folders\n", 1)[1].split("\n## ", 1)[0]
        rows = re.findall(r"^\| `([\w/]+)/` \|(.*)\|([^|]*)\|$", table, re.M)
        self.texts = {name: text for name, text, _ in rows}
        self.uses = {}
        for name, _, uses in rows:
            self.uses[name] = self._allowed(name, uses.strip())

    def _allowed(self, name, uses):
        """None: all. A word without its path is the row beside this one where there is one."""
        if uses == "all":
            return None
        if uses == "all above":
            return set(self.uses)
        beside = os.path.dirname(name) + "/"
        words = re.findall(r"`([\w/]+)/`", uses)
        return {beside + word if beside + word in self.texts and beside + word != name else word
                for word in words}

    def row_of(self, folder):
        """The row that speaks of a folder: the longest name that contains it."""
        while folder and folder not in self.uses:
            folder = os.path.dirname(folder)
        return folder


def find_includes(root=ROOT, folders=None):
    files = source_files(root, folders) if folders else source_files(root)
    known = set(files)
    includes = []
    for path in files:
        text = read(path, root)
        for match in INCLUDE.finditer(text):
            target = folder_of_include(match.group(1), path, known)
            if target is None:
                continue
            line = text.count("\n", 0, match.start()) + 1
            includes.append(Include(path, line, match.group(1), os.path.dirname(path), target))
    return includes


def folder_of_include(name, path, known):
    """The project's folder that an included file is of; None: of no folder of the project."""
    beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
    for file in (name, beside):
        if file in known:
            return os.path.dirname(file)
    for begin, folder in GENERATED:
        if name.startswith(begin):
            return folder or os.path.dirname(name[len(begin):])
    return None


def shown(include, why):
    return f'{include.file}:{include.line}: #include "{include.target}": {why}'


def find_upward(includes, folders):
    """Includes that the table does not allow."""
    wrong = []
    for include in includes:
        source = folders.row_of(include.source_folder)
        target = folders.row_of(include.target_folder)
        if not source or not target:
            missing = include.source_folder if not source else include.target_folder
            wrong.append(shown(include, f"{missing}/ has no row in {PAGE}"))
            continue
        allowed = folders.uses[source]
        if source != target and allowed is not None and target not in allowed:
            wrong.append(shown(include, f"{source}/ does not use {target}/"))
    return wrong


def components(edges):
    """The sets of folders that reach each other (Tarjan, SIAM J. Comput. 1972)."""
    after = collections.defaultdict(set)
    for source, target in edges:
        after[source].add(target)
    index, low, path, found = {}, {}, [], []

    def visit(folder):
        index[folder] = low[folder] = len(index)
        path.append(folder)
        for other in sorted(after[folder]):
            if other not in index:
                visit(other)
                low[folder] = min(low[folder], low[other])
            elif other in path:
                low[folder] = min(low[folder], index[other])
        if low[folder] == index[folder]:
            start = path.index(folder)
            found.append(set(path[start:]))
            del path[start:]

    for folder in sorted({folder for edge in edges for folder in edge}):
        if folder not in index:
            visit(folder)
    return [component for component in found if len(component) > 1]


def find_cycles(includes, exceptions):
    """Includes between folders that reach each other, the fewest of a pair of folders first."""
    between = collections.defaultdict(list)
    for include in includes:
        edge = (include.source_folder, include.target_folder)
        if edge[0] != edge[1] and edge not in exceptions:
            between[edge].append(include)
    wrong = []
    for cycle in components(between):
        inside = [edge for edge in between if set(edge) <= cycle]
        for edge in sorted(inside, key=lambda edge: (len(between[edge]), edge)):
            wrong += [shown(include, "closes the cycle {" + ", ".join(sorted(cycle)) + "}")
                      for include in between[edge]]
    return wrong


def find_needless(includes, exceptions):
    """Exceptions without which there would be no cycle either."""
    edges = {(include.source_folder, include.target_folder) for include in includes}
    needless = []
    for edge in exceptions:
        others = {other for other in edges if other not in exceptions or other == edge}
        if edge not in edges or not any(set(edge) <= cycle for cycle in components(others)):
            needless.append(f"{edge[0]}/ -> {edge[1]}/ closes no cycle: take it out of EXCEPTIONS")
    return needless


def find_libraries(root=ROOT):
    """The folders that CMake makes libraries of, each with those that it links: {folder: [folder]}."""
    libraries = {}
    for parent, inner, files in os.walk(root):
        inner[:] = [name for name in inner if name[0] != "." and not name.startswith("build")]
        if "CMakeLists.txt" in files:
            path = os.path.relpath(os.path.join(parent, "CMakeLists.txt"), root)
            for folder, words in LIBRARY.findall(read(path, root)):
                uses = re.search(r"\bUSES\b((?:\s+[a-z_/0-9]+\b)*)", words)
                libraries[folder] = uses.group(1).split() if uses else []
    return libraries


def reached_from(folder, libraries):
    """The libraries that a library links, directly or through another."""
    reached, left = set(), list(libraries.get(folder, ()))
    while left:
        folder = left.pop()
        if folder not in reached:
            reached.add(folder)
            left += libraries.get(folder, ())
    return reached


def find_unlinked(includes, libraries):
    """Includes of folders that a library does not link, and links that stand for nothing."""
    known = set(libraries).union(*libraries.values())

    def library_of(folder):
        while folder and folder not in known:
            folder = os.path.dirname(folder)
        return folder

    wrong = [f"the library of {folder}/ links itself through {', '.join(uses)}"
             for folder, uses in libraries.items() if folder in reached_from(folder, libraries)]
    included = collections.defaultdict(set)
    for include in includes:
        source, target = library_of(include.source_folder), library_of(include.target_folder)
        included[source].add(target)
        if source in libraries and target not in reached_from(source, libraries) | {source}:
            wrong.append(shown(include, f"{source}/ does not link {include.target_folder}/"))
    for folder, uses in libraries.items():
        for used in uses:
            others = {over for other in uses if other != used for over in reached_from(other, libraries)}
            if used not in included[folder] or used in others:
                wrong.append(f"{folder}/ need not name {used}/ in USES: "
                             + ("another one uses it" if used in others else "no file includes it"))
    return wrong


class IncludeGraph(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.includes = find_includes()
        cls.page = read(PAGE)
        cls.folders = Folders(cls.page)

    def none(self, wrong):
        self.assertEqual(wrong, [], "\n" + "\n".join(wrong))

    def test_folders_use_what_the_page_says(self):
        self.none(find_upward(self.includes, self.folders))

    def test_there_are_no_cycles(self):
        self.none(find_cycles(self.includes, EXCEPTIONS))

    def test_libraries_link_what_they_include(self):
        libraries = find_libraries()
        self.none(find_unlinked(self.includes, libraries))
        inner = {include.source_folder for include in self.includes
                 if include.source_folder.split("/")[0] in ("analyzer", "cli", "replayer")}
        self.assertEqual(inner - set(libraries), set(), "folders without a library of their own")

    def test_exceptions_are_needed_and_on_the_page(self):
        self.none(find_needless(self.includes, EXCEPTIONS))
        principles = self.page.split("\n## Principles", 1)[1].split("\n## ", 1)[0]
        for source, target in EXCEPTIONS:
            sentence = f"`{source}/` and `{target}/` include each other"
            self.assertTrue(sentence in principles, f"{PAGE}: no principle says that {sentence}")

    def test_the_page_names_every_folder_with_sources(self):
        """The table describes inner folders in the row of the folder around them."""
        for folder in sorted({include.source_folder for include in self.includes}):
            row = self.folders.row_of(folder)
            self.assertTrue(row, f"{PAGE} has no row for {folder}/")
            if row in ("tests", folder):
                continue
            name = folder[len(row) + 1:].split("/")[0]
            self.assertIn(f"`{name}/`", self.folders.texts[row], f"{PAGE}: row {row}/")


class PlantedIncludes(unittest.TestCase):
    """The check finds what it is for."""

    PAGE = ("# Page\n\n## Folders\n\n| folder | what | uses |\n|---|---|---|\n"
            "| `storage/` | rows | SQLite |\n| `analyzer/` | `plan/`, `graph/` | `storage/` |\n"
            "| `recorder/wire/` | rings | nothing |\n| `recorder/agent/` | tapes | `wire/` |\n"
            "| `cli/` | commands | all above |\n\n## More\n")
    FILES = {
        "storage/reader.h": "#pragma once\n",
        "analyzer/program.h": '#include "storage/reader.h"\n',
        "analyzer/plan/plan.h": '// The plan.\n#include "analyzer/graph/order.h"\n',
        "analyzer/graph/order.h": '#include "analyzer/program.h"\n',
        "recorder/wire/ring.h": "",
        "recorder/agent/tape.h": '#include "recorder/wire/ring.h"\n',
        "analyzer/CMakeLists.txt": "acltape_folder_library(analyzer USES storage NEEDS fmt::fmt)\n"
                                   "acltape_folder_library(analyzer/graph USES analyzer)\n"
                                   "acltape_folder_library(analyzer/plan\n  USES analyzer/graph)\n",
        "cli/main.cpp": '#include "analyzer/program.h"\n#include "recorder/agent/tape.h"\n',
    }

    @contextlib.contextmanager
    def tree(self, planted):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**self.FILES, **planted}.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w") as file:
                    file.write(text)
            yield root, find_includes(root, ("analyzer", "cli", "recorder", "storage"))

    def includes(self, **planted):
        with self.tree(planted) as (_, includes):
            return includes

    def unlinked(self, **planted):
        with self.tree(planted) as (root, includes):
            return find_unlinked(includes, find_libraries(root))

    def upward(self, **planted):
        return find_upward(self.includes(**planted), Folders(self.PAGE))

    def test_a_tree_in_order_has_nothing_to_find(self):
        self.assertEqual(self.upward(), [])
        self.assertEqual(find_cycles(self.includes(), {}), [])

    def test_a_planted_upward_include_is_named_with_file_and_line(self):
        planted = {"storage/reader.cpp": '#include "storage/reader.h"\n'
                                         '#  include "analyzer/program.h"  // why?\n'}
        self.assertEqual(self.upward(**planted),
                         ['storage/reader.cpp:2: #include "analyzer/program.h": storage/ does not use '
                          'analyzer/'])

    def test_an_include_between_rows_of_one_folder_is_judged_too(self):
        wrong = self.upward(**{"recorder/wire/ring.cpp": '#include "recorder/agent/tape.h"\n'})
        self.assertEqual(len(wrong), 1, wrong)
        self.assertIn("recorder/wire/ring.cpp:1", wrong[0])

    def test_generated_headers_are_of_the_folder_that_makes_them(self):
        page = self.PAGE.replace("| `storage/` | rows", "| `acl/` | api | nothing |\n| `storage/` | rows")
        includes = self.includes(**{"storage/device.cpp": '#include "acl/acl.h"\n'})
        self.assertEqual(len(find_upward(includes, Folders(page))), 1)

    def test_a_planted_cycle_names_both_sides(self):
        includes = self.includes(**{"analyzer/graph/order.cpp": '\n#include "analyzer/plan/plan.h"\n'})
        wrong = find_cycles(includes, {})
        self.assertEqual([line.split(": #", 1)[0] for line in wrong],
                         ["analyzer/graph/order.cpp:2", "analyzer/plan/plan.h:2"])
        self.assertIn("{analyzer/graph, analyzer/plan}", wrong[0])

    def test_an_inner_folder_and_the_one_around_it_can_be_a_cycle(self):
        includes = self.includes(**{"analyzer/program.cpp": '#include "analyzer/plan/plan.h"\n'})
        self.assertTrue(find_cycles(includes, {}))
        exceptions = {("analyzer", "analyzer/plan"): "planted"}
        self.assertEqual(find_cycles(includes, exceptions), [])
        self.assertEqual(find_needless(includes, exceptions), [])

    def test_an_include_of_a_folder_that_is_not_linked_is_named(self):
        self.assertEqual(self.unlinked(), [])
        wrong = self.unlinked(**{"analyzer/graph/order.cpp": '#include "analyzer/plan/plan.h"\n'})
        self.assertEqual(wrong, ['analyzer/graph/order.cpp:1: #include "analyzer/plan/plan.h": '
                                 'analyzer/graph/ does not link analyzer/plan/'])

    def test_links_in_a_circle_and_links_for_nothing_are_mistakes(self):
        lists = self.FILES["analyzer/CMakeLists.txt"]
        for planted, expected in ((lists.replace("USES storage", "USES storage analyzer/plan"), "links itself"),
                                  (lists.replace("USES storage", "USES storage recorder/wire"),
                                   "need not name recorder/wire/ in USES: no file includes it"),
                                  (lists.replace("USES analyzer/graph", "USES analyzer/graph analyzer"),
                                   "need not name analyzer/ in USES: another one uses it")):
            wrong = self.unlinked(**{"analyzer/CMakeLists.txt": planted})
            self.assertTrue(any(expected in line for line in wrong), wrong)

    def test_an_exception_that_occurs_no_more_is_a_mistake(self):
        for edge in (("analyzer", "analyzer/plan"), ("analyzer/plan", "analyzer/graph")):
            self.assertEqual(len(find_needless(self.includes(), {edge: "planted"})), 1)


if __name__ == "__main__":
    unittest.main()
