#!/usr/bin/env python3
"""The page of a fleet: the figures of each rank and step are on it, in a browser too, and nothing that a folder says
runs.
"""
import base64
import json
import os
import re
import shutil
import sys
import tempfile
import zlib

import packages

packages.enter()
sys.path.append(os.path.join(packages.SOURCE, "tests", "page"))
import made_fleet  # noqa: E402
import slow_writer  # noqa: E402
import webdriver  # noqa: E402
from harness import CommandTest, main  # noqa: E402

from acltape import fleet  # noqa: E402
from acltape.fleet import matrix  # noqa: E402

# Data of a page: kind, name and text.
DATA = re.compile(r'<script type="application/([\w-]+)" data-name="([\w.]+)"[^>]*>([^<]*)</script>')
FIGURES = ("wall", "waits", "caused", "memory")
# By what is planted: the rank of it, and the figure that tells it.
PLANTED = {"slow_op": (3, "aclnnMatmul", 1.4), "late_rank": 4, "more_memory": 2}
STANDS_OUT = {"wall": 3, "caused": 4, "memory": 2}
# Sets a flag, opens a window and asks the network, in ways in which a text could be taken for more than text.
INJECTIONS = ["</script><script>window.hacked=1;alert(1)</script>", "<img src=x onerror='hacked=2;alert(2)'>",
              "\"><svg onload=\"window.hacked=3\">", "javascript:window.hacked=4", "${hacked=5}{{hacked=5}}",
              "<iframe src='https://example.com/hacked'></iframe>", "<!--<script>hacked=6</script>",
              "'+(window.hacked=7)+'", "\u2028window.hacked=8\u2029"]


def decoded(page):
    """The data of a page by name: JSON, and columns as lists."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    found = {}
    for kind, name, coded in DATA.findall(text):
        plain = coded.encode() if kind == "json" else zlib.decompress(base64.b64decode(coded))
        found[name] = numbers(plain) if kind == "x-column" else json.loads(plain)
    return found


def numbers(coded):
    """The differences of page/column.h, summed up."""
    values, value, shift, last = [], 0, 0, 0
    for byte in coded:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            last += (value >> 1) ^ -(value & 1)
            values.append(last)
            value, shift = 0, 0
    return values


class PageTest(CommandTest):
    def report(self, folder, *words, code=0):
        return self.acltape("fleet", "report", self.path(folder), *words, code=code,
                            env={**os.environ, "ACLTAPE_PYTHON": sys.executable})

    def page(self, folder):
        page = self.path(f"{folder}.html")
        self.report(folder, "-o", page, "--force")
        return page

    def manifest(self, folder, run, rank, **changes):
        path = self.path(f"{folder}/manifest/{run}.{rank}.json")
        with open(path) as file:
            said = json.load(file)
        with open(path, "w") as file:
            json.dump({**said, **changes}, file)


class Page(PageTest):
    def figure(self, data, name, run=0):
        """A row for each step, with what each rank has, in the figure's own measure."""
        facts = data["fleet"]["runs"][run]
        unit = facts["figures"][name]["unit"]
        values = [value if value < 0 else value * unit for value in data[f"{run}.{name}.figure"]]
        ranks = len(facts["ranks"])
        return [values[first:first + ranks] for first in range(0, len(values), ranks)]

    def test_what_is_planted_stands_out_in_each_step_and_nothing_in_the_right_twin(self):
        made_fleet.write(self.path("planted"), "night", **PLANTED)
        made_fleet.write(self.path("right"), "night")
        planted, right = decoded(self.page("planted")), decoded(self.page("right"))
        for name, rank in STANDS_OUT.items():
            with self.subTest(figure=name):
                steps = self.figure(planted, name)
                self.assertEqual(len(steps), 12)
                for step in steps:
                    self.assertEqual(step.index(max(step)), rank, step)
                    self.assertGreater(max(step), 1.08 * sorted(step)[-2], step)
        for name in ("wall", "memory"):
            for step in self.figure(right, name):
                self.assertLess(max(step), 1.05 * min(step), name)
        self.assertGreater(len({step.index(max(step)) for step in self.figure(right, "caused")}), 2)
        # The rank that is waited for waits for nobody.
        for step in self.figure(planted, "waits"):
            self.assertEqual([rank for rank, value in enumerate(step) if value < 100000], [4], step)

    def test_figures_are_those_of_the_tables(self):
        made_fleet.write(self.path("exact"), "night", ranks=3, steps=5, more_memory=1)
        data = decoded(self.page("exact"))
        with fleet.open(self.path("exact")) as opened:
            for name, question in (
                    ("wall", "SELECT rank, step, wall_ns AS value FROM step_summary"),
                    ("waits", "SELECT rank, step, sum(waited_ns) AS value FROM meeting GROUP BY rank, step")):
                steps = self.figure(data, name)
                rows = opened.arrow(question).to_pylist()
                self.assertEqual(len(rows), 15)
                for row in rows:
                    found = steps[row["step"]][row["rank"]]
                    self.assertAlmostEqual(found, float(row["value"]), delta=max(float(row["value"]) / 1000, 100))
        for step in self.figure(data, "memory"):
            self.assertEqual([round(value / made_fleet.BYTES) for value in step], [1, 3, 1])
        facts, = data["fleet"]["runs"]
        self.assertAlmostEqual(facts["figures"]["wall"]["sums"][2], sum(step[2] for step in self.figure(data, "wall")),
                               delta=2000)

    def test_it_has_the_answers_that_the_command_prints(self):
        made_fleet.write(self.path("told"), "night", **PLANTED)
        with open(self.path("told/manifest/night.5.json"), "w") as file:
            file.write("{")
        page = self.path("told.html")
        said = self.report("told", "-o", page, "--format", "json")
        printed, on_page = json.loads(said.out), decoded(page)["fleet"]
        self.assertIn(page, said.err)
        self.assertEqual([(row["name"], row["answer"], row["next"] or "") for row in printed["answer"]],
                         [(row["name"], row["answer"], row["next"]) for row in on_page["answers"]])
        kinds = {row["name"]: row["kind"] for row in on_page["answers"]}
        self.assertEqual((kinds["slow_ranks"], kinds["collective_order"], kinds["regression"]),
                         ("finding", "none", "unknown"))
        self.assertEqual(on_page["left_out"], [["manifest/night.5.json", "it is no JSON"]])
        self.assertEqual(on_page["runs"][0]["ranks"], [0, 1, 2, 3, 4])
        self.assertRegex(self.report("told", "-o", page, "--force").out,
                         rf"{re.escape(page)}: [\d.]+ KiB\nopen it in a browser: xdg-open ")

    def test_what_is_not_known_is_not_zero(self):
        """Rank 1 lacks the times of the device, so that no rank knows how long it waited for it; rank 2 has no memory,
        and rank 0 no second step."""
        for rank in range(3):
            rows = made_fleet._Rank("night", rank, 3, 4, made_fleet.Faults(), 0).rows
            dropped = {1: ["device_span"], 2: ["buffer_row"]}.get(rank, [])
            rows = {table: [] if table in dropped else of_table for table, of_table in rows.items()}
            if rank == 0:
                rows["step"], rows["step_total"] = ([row for row in rows[table] if row[0] != 1]
                                                    for table in ("step", "step_total"))
            slow_writer.write_rows(self.path("lacking"), rows, "night", rank)
        data = decoded(self.page("lacking"))
        figures = data["fleet"]["runs"][0]["figures"]
        self.assertEqual({name: figures[name]["known"] for name in FIGURES},
                         {"wall": True, "waits": False, "caused": False, "memory": True})
        self.assertEqual(set(data["0.waits.figure"]), {matrix.UNKNOWN})
        self.assertEqual([[value < 0 for value in step] for step in self.figure(data, "wall")],
                         [[step == 1, False, False] for step in range(4)])
        self.assertEqual([step[2] for step in self.figure(data, "memory")], [matrix.UNKNOWN] * 4)
        self.assertEqual(figures["memory"]["sums"][2], None)

    def test_many_steps_share_columns_that_have_the_greatest(self):
        made_fleet.write(self.path("long"), "night", ranks=2, steps=10)
        most, matrix.MOST_CELLS = matrix.MOST_CELLS, 8
        try:
            with fleet.open(self.path("long")) as opened:
                run, = matrix.runs(opened)
                self.assertEqual((run.each, matrix.columns_of(run)), (3, 4))
                wall = next(matrix.figures(opened, [run]))
                rows = opened.arrow("SELECT wall_ns FROM step_summary WHERE rank = 1 ORDER BY step").to_pylist()
        finally:
            matrix.MOST_CELLS = most
        steps = [row["wall_ns"] for row in rows]
        self.assertEqual([value * wall.unit for value in wall.values[1::2]],
                         [round(max(steps[first:first + 3]) / wall.unit) * wall.unit for first in range(0, 10, 3)])
        self.assertEqual(wall.sums[1], sum(steps))


class PageFile(PageTest):
    """The file that is written, or not."""

    def test_a_report_beside_a_trace_is_named_if_it_is_one(self):
        made_fleet.write(self.path("linked"), "night", ranks=3, steps=1)
        for rank, text in ((0, "<!DOCTYPE html><title>acltape report</title>"), (1, "<title>another page</title>")):
            self.manifest("linked", "night", rank, trace={"path": self.path(f"a b{rank}.db")})
            with open(self.path(f"a b{rank}.html"), "w") as file:
                file.write(text)
        facts, = decoded(self.page("linked"))["fleet"]["runs"]
        self.assertEqual(facts["reports"], ["./a%20b0.html", "", ""])

    def test_a_page_replaces_nothing_unasked(self):
        made_fleet.write(self.path("kept"), "night", ranks=1, steps=1)
        page = self.path("kept.html")
        self.report("kept", "-o", page)
        self.assertSentence(self.report("kept", "-o", page, code=2), "kept.html", "exists already", "--force")
        self.report("kept", "--output", page, "--force")
        with open(page, "rb") as first, open(self.page("kept"), "rb") as second:
            self.assertEqual(first.read(), second.read())

    def test_what_cannot_be_written_is_one_sentence_and_leaves_nothing(self):
        made_fleet.write(self.path("refused"), "night", ranks=1, steps=1)
        trace = self.path("trace.db")
        shutil.copy(self.path("refused/acltape_fleet.json"), trace)
        self.manifest("refused", "night", 0, trace={"path": trace})
        for place, code, words in (
                ("/nowhere/t.html", 4, ["/nowhere/t.html"]), (self.folder, 2, ["folder"]),
                (self.path("refused/acltape_fleet.json"), 2, ["a file of the fleet itself"]),
                (self.path("refused/manifest/night.0.json"), 2, ["a file of the fleet itself"]),
                (trace, 2, ["is a trace of the fleet"])):
            with self.subTest(place=place):
                self.assertSentence(self.report("refused", "-o", place, "--force", code=code), *words)
        self.assertSentence(self.report("nowhere", "-o", self.path("none.html"), code=2), "there is no folder")
        left = [name for _, _, names in os.walk(self.folder) for name in names if "partial" in name or "none" in name]
        self.assertEqual(left, [])
        self.report("refused")

    def test_options_of_the_page_are_refused_elsewhere(self):
        for words, said in ((("ask", "DIR", "SELECT 1", "-o", "x.html"), "-o is of fleet report alone"),
                            (("add", "DIR", "t.db", "-o", "x.html"), "-o is of fleet report alone"),
                            (("report", "DIR", "--force"), "--force is of fleet add, and of fleet report with -o")):
            with self.subTest(words=words):
                self.assertSentence(self.acltape("fleet", *words, code=2), said)

    def test_a_folder_without_ranks_has_a_page(self):
        os.makedirs(self.path("empty"))
        with open(self.path("empty/acltape_fleet.json"), "w") as file:
            json.dump({"format": 1, "tables": 1}, file)
        self.assertEqual(decoded(self.page("empty"))["fleet"]["runs"], [])


class PageInBrowser(PageTest):
    @classmethod
    def setUpClass(cls):
        if webdriver.MISSING:
            print(f"skipped: {webdriver.MISSING}")
            sys.exit(packages.SKIPPED)
        super().setUpClass()

    def open(self, page, dark=False):
        browser = webdriver.Browser(1400, 900, dark)
        browser.__enter__()
        self.addCleanup(browser.__exit__, None, None, None)
        self.addCleanup(self.keep_picture, browser)
        browser.console()
        browser.requests()
        browser.open("file://" + page)
        browser.wait_for("return document.documentElement.dataset.ready")
        self.browser = browser
        return browser

    def keep_picture(self, browser):
        result = self._outcome.result
        if any(getattr(test, "test_case", test) is self for test, _ in result.failures + result.errors):
            picture = os.path.join(tempfile.gettempdir(), f"acltape_{self.id()}.png")
            browser.screenshot(picture)
            print("the page looked like this:", picture)

    def assertQuiet(self):
        """No message in the console, no request but for the page itself."""
        self.assertEqual([entry["message"] for entry in self.browser.console()], [])
        asked = [url for url in self.browser.requests() if not url.startswith(("file:///", "data:", "chrome:"))]
        self.assertEqual(asked, [])

    def show_matrix(self, figure=1):
        self.browser.click_on("[data-section=matrix]")
        self.browser.click_on(f".toolbar .choice button:nth-child({figure})")
        self.frame()

    def frame(self):
        self.browser.wait_for(
            "return new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(true))))")

    def place_of(self, row, column):
        """The middle of a cell of a small matrix (page/web/fleet_matrix.js)."""
        x, y, _, _ = self.browser.box("#matrix-canvas")
        return x + 112 + 64 * column + 30, y + 26 + 24 * row + 12

    def colours(self, rows, column=2):
        """Red, green and blue of the cells of a column."""
        width, height, unit, pixels = webdriver.pixels(self.browser.screenshot())
        found = []
        for row in range(rows):
            x, y = map(int, self.place_of(row, column))
            found.append(tuple(pixels[y][x * unit:x * unit + 3]))
        return found

    def test_what_is_planted_has_another_colour(self):
        made_fleet.write(self.path("colours"), "night", **PLANTED)
        page = self.page("colours")
        for dark in (False, True):
            self.open(page, dark)
            for number, name in enumerate(FIGURES, 1):
                if name not in STANDS_OUT:
                    continue
                with self.subTest(figure=name, dark=dark):
                    self.show_matrix(number)
                    colours = self.colours(6)
                    red = [one[0] - one[2] for one in colours]
                    self.assertEqual(red.index(max(red)), STANDS_OUT[name], colours)
                    self.assertGreater(max(red), sorted(red)[-2] + 60, colours)
            self.assertQuiet()

    def test_a_click_shows_the_rank_the_step_and_how_to_open_them(self):
        made_fleet.write(self.path("clicked"), "night", ranks=4, steps=6, slow_op=(2, "aclnnMatmul", 1.4))
        browser = self.open(self.page("clicked"))
        self.show_matrix()
        browser.move(*self.place_of(2, 3))
        self.assertRegex(browser.text("#tip"),
                         r"Rank 2 \(main\), step 3\nStep time: [\d.]+ µs \(\+[\d.]+ % against the median [\d.]+ µs\)")
        browser.click(*self.place_of(2, 3))
        said = browser.text("#side")
        self.assertIn("Rank 2, step 3", said)
        self.assertIn("acltape report /traces/night.rank2.db", said)
        self.assertIn("acltape query /traces/night.rank2.db --calls step:3 --name top_ops", said)
        browser.keys("Escape")
        self.assertTrue(browser.run("return document.getElementById('side').hidden"))
        self.assertQuiet()

    def test_keys_reach_each_cell(self):
        made_fleet.write(self.path("keys"), "night", ranks=4, steps=6)
        browser = self.open(self.page("keys"))
        browser.keys("2")
        browser.run("document.getElementById('matrix-canvas').focus()")
        right, down = "\ue014", "\ue015"
        browser.keys(right, right, right, down)
        self.frame()
        self.assertTrue(browser.text(".status").startswith("Rank 1 (main), step 2"), browser.text(".status"))
        browser.keys("Enter")
        self.assertIn("Rank 1, step 2", browser.text("#side"))
        browser.keys("w", "w", "d", "s", "0", "?")
        self.assertIn("go from cell to cell", browser.text("#keys"))
        browser.keys("Escape", "3")
        self.assertIn("Ranks of night", browser.text("#main"))
        self.assertQuiet()

    def test_another_run_another_order_and_absolute_figures(self):
        made_fleet.write(self.path("two"), "monday", ranks=3, steps=4)
        made_fleet.write(self.path("two"), "tuesday", ranks=5, steps=6, slow_op=(3, "aclnnMatmul", 1.4))
        browser = self.open(self.page("two"))
        self.show_matrix()
        for selector, value in (("#run", "1"), (".toolbar select", "time")):
            browser.run("const s = document.querySelector(arguments[0]); s.value = arguments[1];"
                        "s.dispatchEvent(new Event('change'))", selector, value)
        browser.click_on(".toolbar .choice:nth-of-type(2) button:nth-child(2)")
        self.frame()
        browser.move(*self.place_of(0, 5))
        self.assertIn("Rank 3 (main), step 5", browser.text("#tip"))
        self.assertQuiet()

    def test_a_figure_that_is_not_known_is_not_offered(self):
        made_fleet.write(self.path("alone"), "night", ranks=1, steps=3)
        rows = made_fleet._Rank("without", 0, 1, 1, made_fleet.Faults(), 0).rows
        rows = {table: [] if table in ("step", "step_total") else of_table for table, of_table in rows.items()}
        slow_writer.write_rows(self.path("alone"), rows, "without_steps", 0)
        browser = self.open(self.page("alone"))
        self.show_matrix()
        offered = browser.run("return [...document.querySelectorAll('.toolbar .choice button')].slice(0, 4)"
                              ".map(button => !button.disabled)")
        self.assertEqual(offered, [True, False, False, True])
        self.assertIn("Waits: not known", browser.text(".toolbar"))
        browser.move(*self.place_of(0, 1))
        self.assertIn("Waits: not known", browser.text("#tip"))
        browser.run("const s = document.querySelector('#run'); s.value = '1'; s.dispatchEvent(new Event('change'))")
        self.assertIn("Step time: not known, as the traces have no steps", browser.text(".toolbar"))
        browser.run("document.getElementById('matrix-canvas').focus()")
        browser.keys("\ue014", "\ue014", "Enter")
        self.assertTrue(browser.run("return document.getElementById('side').hidden"))
        browser.keys("3")
        self.assertIn("not known", browser.text("#main table"))
        self.assertQuiet()

    def test_nothing_that_a_folder_says_runs(self):
        names = iter(INJECTIONS * 30)
        for rank in range(4):
            rows = made_fleet._Rank("night", rank, 4, 6, made_fleet.Faults(slow_op=(2, "aclnnMatmul", 1.5)), 0).rows
            rows["op"] = [(row[0], row[1], row[2] if row[1] != "aclnn" else INJECTIONS[row[0]], *row[3:])
                          for row in rows["op"]]
            rows["stack_location"] = [(1, INJECTIONS[1], 12, INJECTIONS[0])]
            slow_writer.write_rows(
                self.path("hostile"), rows, "night", rank, label=INJECTIONS[0], host=next(names), program=next(names),
                recorded=next(names), acltape_version=next(names), lacks=[next(names), next(names)],
                trace={"path": INJECTIONS[3] if rank == 2 else next(names)})
        with open(self.path("hostile/manifest/<img src=x onerror=alert(9)>.json"), "w") as file:
            file.write("{")
        page = self.page("hostile")
        with open(page, encoding="utf-8") as file:
            text = file.read()
        for injection in INJECTIONS[:2]:
            self.assertNotIn(injection, text)
        browser = self.open(page)
        for name in ("overview", "matrix", "ranks"):
            browser.click_on(f"[data-section={name}]")
            x, y, width, height = browser.box("#main")
            for index in range(4):
                browser.move(x + width * (0.1 + 0.2 * index), y + height * (0.25 + 0.1 * index))
            self.assertFalse(browser.alert_is_open(), name)
        self.show_matrix()
        for row in range(4):
            browser.move(*self.place_of(row, 1))
            browser.click(*self.place_of(row, 1))
            self.assertFalse(browser.alert_is_open(), row)
        self.assertIsNone(browser.run("return window.hacked === undefined ? null : window.hacked"))
        active = "img, iframe, object, embed, link, a, body style"
        self.assertEqual(browser.run("return document.querySelectorAll(arguments[0]).length", active), 0)
        # The words themselves are there to be read.
        browser.keys("1")
        self.assertIn("<img src=x onerror", browser.text("#main"))
        self.assertQuiet()

    def test_a_page_without_its_data_says_so(self):
        made_fleet.write(self.path("cut"), "night", ranks=1, steps=1)
        page = self.page("cut")
        with open(page, encoding="utf-8") as file:
            text = file.read()
        with open(page, "w", encoding="utf-8") as file:
            file.write(re.sub(r'(data-name="fleet">)[^<]*', r"\1{", text))
        browser = webdriver.Browser(1000, 700)
        with browser:
            browser.open("file://" + page)
            browser.wait_for("return document.body.innerText.includes('The page could not be shown')")


if __name__ == "__main__":
    main()
