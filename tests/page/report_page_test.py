#!/usr/bin/env python3
"""The report page in a real browser, by real input: it draws, zooms, searches, and runs nothing of
what a trace says.

Screenshots of failed tests are kept; the message names the file.
"""
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("cli", "programs"):
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), folder))

import acl_programs  # noqa: E402
import webdriver  # noqa: E402
from harness import SOURCE, TORCH_PYTHON, WORKLOADS, CommandTest, main  # noqa: E402

NAMES = ["overview", "timeline", "graph", "own-graphs", "operators", "icicle", "memory", "findings", "measurements",
         "bisections", "ranks", "against"]
needs_browser = unittest.skipIf(webdriver.MISSING, webdriver.MISSING)

# Sets a flag, opens a window and asks the network, in every way in which a text could be taken for
# more than text.
INJECTIONS = ["</script><script>window.hacked=1;alert(1)</script>", "<img src=x onerror='hacked=2;alert(2)'>",
              "\"><svg onload=\"window.hacked=3\">", "javascript:window.hacked=4", "${hacked=5}{{hacked=5}}",
              "<iframe src='https://example.com/hacked'></iframe>", "<!--<script>hacked=6</script>",
              "'+(window.hacked=7)+'", "\u2028window.hacked=8\u2029", "<style>*{display:none!important}</style>"]


class PageTest(CommandTest):
    """Traces recorded once for a class; a page in a browser for each test that opens one."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace = os.path.join(cls.folder, "mlp.db")
        test = cls("skipTest")
        test.record(cls.trace, TORCH_PYTHON, os.path.join(WORKLOADS, "mlp_train.py"), "--steps", "6",
                    payload="all", options=["--modules"])

    def page(self, *options, trace=None):
        path = self.path(f"{self.id().rsplit('.', 1)[-1]}.html")
        self.acltape("report", trace or self.trace, "-o", path, "--force", *options)
        return path

    def open(self, path, dark=False):
        browser = webdriver.Browser(1400, 900, dark)
        browser.__enter__()
        self.addCleanup(browser.__exit__, None, None, None)
        self.browser = browser
        browser.requests()
        browser.console()
        browser.open("file://" + path)
        browser.wait_for("return document.documentElement.dataset.ready")
        return browser

    def show(self, name):
        self.browser.click_on(f"[data-section={name}]")
        self.browser.wait_for(
            "return new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(true))))")

    def assertQuiet(self):
        """No message in the console, no request but for the page itself."""
        self.assertEqual([entry["message"] for entry in self.browser.console()], [])
        asked = [url for url in self.browser.requests() if not url.startswith(("file:///", "data:", "chrome:"))]
        self.assertEqual(asked, [])

    def colours(self, selector):
        """How many colours an element shows, and its pixels as bytes."""
        x, y, width, height = (int(value) for value in self.browser.box(selector))
        ratio = self.browser.run("return devicePixelRatio")
        self.assertEqual(ratio, 1)
        columns, rows, unit, data = webdriver.pixels(self.browser.screenshot())
        right, bottom = min(x + width, columns), min(y + height, rows)
        part = [bytes(data[row][x * unit:right * unit]) for row in range(y, bottom, 3)]
        seen = {line[first:first + 3] for line in part for first in range(0, len(line), unit * 2)}
        return len(seen), b"".join(part)

    def tearDown(self):
        """Keeps a picture of the page where a check failed."""
        browser = getattr(self, "browser", None)
        failed = any(error for _, error in self._outcome.errors) if hasattr(self._outcome, "errors") else \
            self._outcome.result.failures or self._outcome.result.errors
        if browser is not None and failed:
            picture = os.path.join(tempfile.gettempdir(), f"acltape_{self.id()}.png")
            browser.screenshot(picture)
            print("the page looked like this:", picture)


class Command(PageTest):
    def test_writes_beside_the_trace_and_says_what_next(self):
        copy = self.path("copy.db")
        shutil.copy(self.trace, copy)
        result = self.acltape("report", copy)
        page = self.path("copy.html")
        self.assertTrue(os.path.exists(page), result)
        self.assertIn(page, result.out)
        self.assertIn("KiB", result.out)
        self.assertIn("browser", result.out)

    def test_never_replaces_what_is_there_unasked(self):
        page = self.page()
        before = os.path.getmtime(page)
        self.assertSentence(self.acltape("report", self.trace, "-o", page, code=2), page, "--force")
        self.assertEqual(os.path.getmtime(page), before)
        self.acltape("report", self.trace, "-o", page, "--force")

    def test_never_replaces_the_trace(self):
        result = self.acltape("report", self.trace, "-o", self.trace, "--force", code=2)
        self.assertSentence(result, "the trace itself")
        self.acltape("info", self.trace)

    def test_names_what_cannot_be_shown(self):
        self.assertSentence(self.acltape("report", self.path("none.db"), code=3), "none.db")
        self.assertSentence(self.acltape("report", self.trace, "-o", "/nowhere/t.html", code=4), "/nowhere/t.html")
        self.assertSentence(self.acltape("report", self.trace, "-o", self.folder, code=2), "folder")
        wrong = self.path("wrong.json")
        with open(wrong, "w") as file:
            file.write("{}")
        page = self.path("unwritten.html")
        result = self.acltape("report", self.trace, "-o", page, "--plan", wrong, code=2)
        self.assertSentence(result, "PLAN-")
        self.assertSentence(self.acltape("report", self.trace, "-o", page, "--journal", wrong, code=2), "journal")
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("unwritten")], [])

    def test_a_trace_stays_as_it_is(self):
        copy = self.path("untouched.db")
        shutil.copy(self.trace, copy)
        with open(copy, "rb") as file:
            before = file.read()
        self.acltape("report", copy, "-o", self.path("untouched.html"))
        with open(copy, "rb") as file:
            self.assertEqual(file.read(), before)

    def test_the_page_is_the_same_each_time(self):
        with open(self.page(), "rb") as first:
            with open(self.page(), "rb") as second:
                self.assertEqual(first.read(), second.read())


@needs_browser
class Timeline(PageTest):
    CANVAS = "#timeline-canvas"

    def setUp(self):
        self.open(self.page())
        self.show("timeline")

    def visible(self):
        """Begin and end of what is visible, in ns."""
        return self.browser.run(
            "const c = document.querySelector('#timeline-canvas'), t = c.__zoom;"
            "return [-t.x / t.k, t.k]")

    def middle(self):
        x, y, width, height = self.browser.box(self.CANVAS)
        return x + width / 2, y + 160

    def test_is_drawn_and_zooms_by_wheel(self):
        count, before = self.colours(self.CANVAS)
        self.assertGreater(count, 12, "the canvas is blank")
        self.browser.wheel(*self.middle(), -400, times=4)
        self.assertGreater(self.visible()[1], 3)
        count, after = self.colours(self.CANVAS)
        self.assertGreater(count, 8)
        self.assertNotEqual(before, after)
        self.assertQuiet()

    def test_zooms_and_moves_by_keys(self):
        self.browser.keys("www")
        left, scale = self.visible()
        self.assertGreater(scale, 2.5)
        self.browser.keys("dd")
        moved, same = self.visible()
        self.assertGreater(moved, left)
        self.assertAlmostEqual(same, scale, places=6)
        self.browser.keys("aa")
        self.assertLess(self.visible()[0], moved)
        self.browser.keys("ss")
        self.assertLess(self.visible()[1], scale)
        self.browser.keys("0")
        self.browser.wait_for("return document.querySelector('#timeline-canvas').__zoom.k < 1.001")
        self.assertQuiet()

    def test_moves_by_dragging(self):
        x, y = self.middle()
        self.browser.keys("wwww")
        left, _ = self.visible()
        self.browser.drag(x, y + 100, x - 200, y + 100)
        self.assertGreater(self.visible()[0], left)

    def test_a_list_that_was_closed_does_not_come_back(self):
        # Enter searches at once, before the pause that follows each letter has passed.
        self.browser.run("""
            const input = document.querySelector('#search-text');
            input.value = 'op:aten::addmm';
            input.dispatchEvent(new Event('input'));
            document.querySelector('#search').requestSubmit();
            document.querySelector('#side .head button').click();""")
        time.sleep(0.5)
        self.assertTrue(self.browser.run("return document.querySelector('#side').hidden"))

    def test_a_click_shows_the_call(self):
        # Found by search, zoomed to, and clicked where it is drawn: in the middle.
        self.browser.keys("/", "op:aten::addmm", "Enter")
        self.browser.wait_for("return document.querySelectorAll('#side .hit').length > 5")
        self.browser.click_on("#side .hit:nth-of-type(2)")
        self.browser.wait_for("return document.querySelector('#side h2').textContent === 'aten::addmm'")
        chosen = self.browser.text("#side")
        self.browser.click_on("#side .head button")
        self.browser.wait_for("return document.querySelector('#side').hidden")
        found = ""
        for line in range(160, 420, 12):  # below the ranges, which a click zooms to
            # The panel takes room from the canvas, whose middle stays the middle of the call.
            self.browser.wait_for("const c = document.querySelector('#timeline-canvas'); "
                                  "return Math.abs(c.width - c.clientWidth * devicePixelRatio) < 2")
            x, y, width, height = self.browser.box(self.CANVAS)
            self.browser.click(x + width / 2, y + line)
            if self.browser.run("return document.querySelector('#side').hidden"):
                continue
            found = self.browser.text("#side")
            if "aten::addmm" in found.splitlines()[0]:
                break
            self.browser.click_on("#side .head button")
            self.browser.wait_for("return document.querySelector('#side').hidden")
        self.assertIn("aten::addmm", found)
        for word in ("float32[", "Step", "Module", "Sequential", "mat1", "acltape query", "acltape graph"):
            self.assertIn(word, found, chosen)
        self.browser.keys("Escape")
        self.assertTrue(self.browser.run("return document.querySelector('#side').hidden"))
        self.assertQuiet()

    def test_work_of_the_device_has_a_track_and_shows_its_call(self):
        trace = self.path("device.db")
        shutil.copy(self.trace, trace)
        with sqlite3.connect(trace) as database:
            begin, end = database.execute("SELECT min(begin_ns), max(end_ns) FROM call").fetchone()
            call, = database.execute("SELECT max(call_id) FROM call WHERE op = 'aten::addmm'").fetchone()
            # The device works on the last product from the first call on.
            database.execute("INSERT INTO device_span VALUES (?, 1, ?, ?, 0)", (call, begin, end))
        self.open(self.page(trace=trace))
        self.show("timeline")
        x, y, width, height = self.browser.box(self.CANVAS)
        found = ""
        for line in range(int(height) - 10, 100, -12):  # the device's line is the lowest
            self.browser.click(x + width / 4, y + line)
            if not self.browser.run("return document.querySelector('#side').hidden"):
                found = self.browser.text("#side")
                break
        self.assertIn("aten::addmm", found)
        self.assertRegex(found, rf"\b{call}\b")
        self.assertQuiet()

    def test_searches_with_the_words_of_the_commands(self):
        for text in ("op:aten::addmm", "step:2/op:aten::mm,aten::add*", "10-40", "op:*backward*", "5,7-9",
                     "step:1-2", "step:4-"):
            with self.subTest(selection=text):
                rows = self.json("graph", self.trace, text)
                expected = sum(row["opcode"] == "call_function" for row in rows)
                self.browser.run("document.querySelector('#search-text').value = ''")
                self.browser.keys("Escape", "Escape", "/", text, "Enter")
                state = self.browser.wait_for("return document.querySelector('#search-state').textContent")
                found = self.browser.run(
                    "return [...document.querySelectorAll('#side .hit .name')].map(e => e.textContent)")
                self.assertGreater(len(found), 0, state)
                sql = {"op:aten::addmm": "op LIKE 'aten::addmm%'", "10-40": "call_id BETWEEN 10 AND 40",
                       "step:2/op:aten::mm,aten::add*":
                           "step = 2 AND (op = 'aten::mm' OR op LIKE 'aten::mm.%' OR op LIKE 'aten::add%')",
                       "op:*backward*": "op GLOB '*backward*'", "5,7-9": "call_id IN (5, 7, 8, 9)",
                       "step:1-2": "step IN (1, 2)", "step:4-": "step >= 4"}[text]
                count = self.json("query", self.trace, f"SELECT count(*) AS n FROM call WHERE {sql}")[0]["n"]
                self.assertEqual(int(state.split()[0].replace(",", "")), count)
                leaves = self.json("query", self.trace,
                                   f"SELECT count(*) AS n FROM call WHERE leaf = 1 AND {sql}")[0]["n"]
                self.assertLessEqual(expected, leaves)  # `graph` leaves views of nothing out

    def test_a_wrong_selection_says_what_is_wrong(self):
        self.browser.keys("/", "step:x", "Enter")
        self.browser.wait_for("return document.querySelector('#search-text').classList.contains('wrong')")
        self.assertIn("'x'", self.browser.text("#search-state"))
        self.assertQuiet()

    def test_free_text_finds_modules(self):
        self.browser.keys("/", "sequential", "Enter")
        self.browser.wait_for("return document.querySelectorAll('#side .hit').length > 3")

    def test_found_calls_stand_out(self):
        _, before = self.colours(self.CANVAS)
        self.browser.keys("/", "op:aten::mm", "Enter")
        self.browser.wait_for("return document.querySelectorAll('#side .hit').length > 3")
        self.browser.keys("Escape")
        _, after = self.colours(self.CANVAS)
        self.assertNotEqual(before, after)
        self.browser.keys("n")
        self.browser.wait_for("return document.querySelector('#side h2')?.textContent === 'aten::mm'")
        self.assertGreater(self.visible()[1], 10)  # it went there

    def test_an_area_sums_up_its_calls(self):
        """A drag on the ruler takes all rows, one with shift those that it touches."""
        x, y, width, height = self.browser.box(self.CANVAS)
        every = self.browser.run("return Number([...document.querySelectorAll('[data-section=timeline] .count')][0]"
                                 ".textContent.replace(',', ''))")
        self.browser.keys("e")  # what is visible, without a mouse
        said = self.browser.text("#side [role=status]")
        self.assertIn(f"{every:,} calls", said)
        # The sums by operator are those of the view.
        top = self.json("query", self.trace, "SELECT op, calls FROM top_ops LIMIT 1")[0]
        cells = ("return [...document.querySelectorAll('#side tbody tr')].map(r => [...r.children]"
                 ".map(c => c.textContent))")
        rows = {row[0]: row for row in self.browser.run(cells)}
        self.assertEqual(int(rows[top["op"]][1].replace(",", "")), top["calls"])
        self.browser.run("[...document.querySelectorAll('#side .choice button')]"
                         ".find(b => b.textContent === 'Module').click()")
        self.assertTrue(any("Sequential" in row[0] for row in self.browser.run(cells)))
        before = self.visible()
        # Drags on the ruler and with shift; neither moves or zooms.
        for top, bottom, shift in ((60, 60, False), (130, 260, True)):
            self.browser.keys("Escape")
            self.browser.drag(x + width * 0.3, y + top, x + width * 0.5, y + bottom, shift=shift)
            self.browser.wait_for("return /selected/.test(document.querySelector('#side').innerText)")
            self.assertNotEqual(self.browser.text("#side [role=status]"), said)
            self.assertEqual(self.visible()[1], before[1])
        self.assertQuiet()

    def test_rows_hide_pin_and_move_and_marks_are_kept(self):
        x, y = self.middle()
        self.browser.move(x, y)
        self.browser.keys("m", "r")
        self.assertIn("Rows and marks", self.browser.text("#side"))
        self.assertEqual(self.browser.run("return document.querySelectorAll('#side .lane').length") -
                         self.browser.run("return document.querySelectorAll('#side input[type=checkbox]').length"), 1)
        _, before = self.colours(self.CANVAS)
        self.browser.click_on("#side input[type=checkbox]")
        self.browser.wait_for("return new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))")
        _, hidden = self.colours(self.CANVAS)
        self.assertNotEqual(before, hidden)
        self.browser.click_on("#side input[type=checkbox]")
        self.browser.click_on("#side .lane .icon")
        self.browser.wait_for("return document.querySelector('#side .lane .icon').getAttribute('aria-pressed') "
                              "=== 'true'")
        self.assertIn("Unpin", self.browser.run("return document.activeElement.title + "
                                                "document.querySelector('#side .lane .icon').title"))
        self.assertQuiet()

    def test_the_start_up_is_folded_and_opens(self):
        trace = self.path("late.db")
        shutil.copy(self.trace, trace)
        with sqlite3.connect(trace) as database:
            # Nine tenths of the time pass before the first step.
            first, span, first_begin = database.execute(
                "SELECT s.first_call, max(c.begin_ns) - min(c.begin_ns), (SELECT begin_ns FROM call_row "
                "WHERE call_id = s.first_call) - min(c.begin_ns) "
                "FROM call_row c JOIN (SELECT min(first_call) AS first_call FROM step) s"
            ).fetchone()
            database.execute("UPDATE call_row SET begin_ns = begin_ns + ? WHERE call_id >= ?", (9 * span, first))
        browser = self.open(self.page(trace=trace))
        self.show("timeline")
        text = "return [...document.querySelectorAll('[data-name=timeline] .toolbar button')].map(b => b.textContent)"
        self.assertTrue(any(word.startswith("Open the start-up") for word in browser.run(text)))
        _, folded = self.colours(self.CANVAS)
        browser.keys("o")
        browser.wait_for("return new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))")
        self.assertIn("Fold the start-up", browser.run(text))
        self.assertIn("0 ns – ", browser.text("[data-name=timeline] .toolbar"))  # all of the trace, and no more
        _, opened = self.colours(self.CANVAS)
        self.assertNotEqual(folded, opened)
        # The curve of memory has the same axis: opened, the steps take its last tenth.
        self.show("memory")
        area = "[data-name=memory] [aria-label='Living bytes over time']"
        folds = f"return document.querySelectorAll(\"{area} .folds rect\").length"
        self.assertEqual(browser.run(folds), 0)
        _, opened = self.colours(area)
        browser.keys("o")
        self.show("memory")
        self.assertEqual(browser.run(folds), 1)
        self.assertNotEqual(self.colours(area)[1], opened)
        ticks = browser.run(f"return [...document.querySelectorAll(\"{area} .tick text\")].map(t => t.textContent)")
        times = [float(tick.split()[0]) for tick in ticks if tick.endswith(" s")]
        self.assertEqual([tick for tick in ticks if tick.endswith("NaN")], [])
        begin = (first_begin + 9 * span) / 1e9
        self.assertTrue(all(time >= begin - 0.001 or time == 0 for time in times), (times, begin))
        self.assertQuiet()

    def test_keys_are_explained(self):
        self.browser.keys("?")
        self.assertTrue(self.browser.run("return document.querySelector('#keys').open"))
        self.assertIn("search", self.browser.text("#keys"))
        self.browser.keys("Escape")
        self.assertFalse(self.browser.run("return document.querySelector('#keys').open"))


@needs_browser
class Sections(PageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        test = cls("skipTest")
        cls.full = os.path.join(cls.folder, "full.db")
        shutil.copy(cls.trace, cls.full)
        plan = os.path.join(cls.folder, "plan.json")
        test.acltape("plan", cls.full, "-o", plan)
        test.acltape("lint", cls.full, code=1)
        cls.linted = os.path.join(cls.folder, "linted.db")
        shutil.copy(cls.full, cls.linted)
        test.acltape("compare", cls.full, "--plan", plan, "--repetitions", "5", "--warmup", "1")
        call = test.json("query", cls.full, "SELECT call_id FROM call WHERE op = 'aten::addmm' AND step = 1 LIMIT 1")
        test.acltape("bisect", cls.full, "--plan", plan, "--plant", f"wrong_bits@{call[0]['call_id']}", code=1)

    def test_each_section_says_which_command_fills_it(self):
        browser = self.open(self.page())
        wanted = {"measurements": "acltape compare", "bisections": "acltape bisect", "against": "--against",
                  "ranks": "no collective of HCCL"}
        for name in NAMES:
            self.show(name)
            self.assertIn(wanted.get(name, ""), browser.text("#main"))
        self.assertQuiet()

    def test_sections_show_what_tools_stored(self):
        browser = self.open(self.page(trace=self.full))
        expected = {"overview": ["mlp_train.py", "What dominates", "aten::", "Measured by acltape compare",
                                 "What to do next"],
                    "operators": ["Own time", "aten::addmm"], "icicle": ["Sequential"],
                    "memory": ["alive at once", "Pools of captured graphs", "parameter"],
                    "findings": ["LINT-", "Edit:", "Ledger"],
                    "measurements": ["eager", "captured by the plan", "95 % interval"],
                    "bisections": ["addmm", "experiments", "bad", "good"]}
        for name, words in expected.items():
            self.show(name)
            text = browser.text("#main > section:not([hidden])")
            for word in words:
                self.assertIn(word, text, name)
        self.assertQuiet()

    def test_medians_are_those_of_the_stored_samples(self):
        browser = self.open(self.page(trace=self.full))
        self.show("measurements")
        rows = self.json("query", self.full, "SELECT s.host_ns AS t FROM sample s JOIN run r USING (run_id) "
                         "WHERE r.mode = 'eager' AND s.call_id IS NULL ORDER BY t")
        times = [row["t"] for row in rows]
        middle = len(times) // 2
        median = times[middle] if len(times) % 2 else (times[middle - 1] + times[middle]) / 2
        cells = browser.run("return [...document.querySelectorAll("
                            "'[data-name=measurements] tbody tr:first-child td')].map(e => e.textContent)")
        shown = float(cells[2].split()[0]) * {"µs": 1e3, "ms": 1e6}[cells[2].split()[1]]
        self.assertAlmostEqual(shown / median, 1, delta=0.01)

    def test_the_parts_of_a_step_are_those_of_the_query(self):
        trace = self.path("parts.db")
        shutil.copy(self.trace, trace)
        with sqlite3.connect(trace) as database:
            # A range of a DataLoader, and a device that works during the last half of each call.
            database.execute("UPDATE scope SET name = 'enumerate(DataLoader)#x.__next__' WHERE scope_id = ("
                             "SELECT scope_id FROM scope_range GROUP BY scope_id ORDER BY count(*) DESC LIMIT 1)")
            database.execute("INSERT INTO device_span SELECT call_id, 1, (begin_ns + end_ns) / 2, end_ns, 0 FROM call "
                             "WHERE op = 'aten::addmm'")
        rows = {row["step"]: row for row in self.json("query", trace, "step_breakdown")}
        browser = self.open(self.page(trace=trace))
        self.assertIn("step_breakdown", browser.text("#main"))
        parts = ("return Object.fromEntries([...document.querySelectorAll('.breakdown [data-part]')]"
                 ".map(e => [e.dataset.part, Number(e.dataset.ns)]))")
        for step in sorted(rows):
            browser.run("const s = document.querySelector('select[aria-label=Step]'); s.selectedIndex = arguments[0]; "
                        "s.dispatchEvent(new Event('change'))", sorted(rows).index(step))
            row = rows[step]
            shown = browser.run(parts)
            self.assertEqual(shown, {name: row[name] for name in row if name in shown})
            host = sum(value for name, value in shown.items() if not name.startswith("device_"))
            self.assertEqual(host, row["step_ns"])
            device = [name for name in row if name.startswith("device_") and row[name]]
            self.assertEqual([name for name in device if name not in shown], [])
            self.assertGreater(shown["device_compute_ns"], 0)
        self.assertQuiet()

    def test_operators_agree_with_the_views(self):
        browser = self.open(self.page())
        self.show("operators")
        top = self.json("query", self.trace, "SELECT op, calls, total_ns FROM top_ops LIMIT 1")[0]
        row = browser.run("return [...document.querySelectorAll('[data-name=operators] tbody tr')]"
                          ".map(r => [...r.children].map(c => c.textContent))"
                          ".find(r => r[0] === arguments[0])", top["op"])
        self.assertEqual(int(row[1].replace(",", "")), top["calls"])
        # Sorted by a click on a column, filtered by a text.
        browser.click_on("[data-name=operators] th:first-child button")
        names = browser.run("return [...document.querySelectorAll('[data-name=operators] tbody td:first-child')]"
                            ".map(e => e.textContent)")
        self.assertEqual(names, sorted(names))
        browser.click_on("[data-name=operators] input.filter")
        browser.keys("mm")
        names = browser.run("return [...document.querySelectorAll('[data-name=operators] tbody td:first-child')]"
                            ".map(e => e.textContent)")
        self.assertTrue(names and all("mm" in name.lower() for name in names), names)
        self.assertQuiet()

    def test_the_graph_is_drawn_and_zooms(self):
        browser = self.open(self.page())
        self.show("graph")
        count, before = self.colours("#graph-canvas")
        self.assertGreater(count, 6)
        x, y, width, height = browser.box("#graph-canvas")
        browser.wheel(x + width / 2, y + height / 2, -300, times=2)
        count, after = self.colours("#graph-canvas")
        self.assertNotEqual(before, after)
        browser.run("for (const b of document.querySelectorAll('[data-name=graph] .choice button')) "
                    "if (b.textContent === 'By stream') b.click()")
        self.show("graph")
        self.assertNotEqual(self.colours("#graph-canvas")[1], after)
        self.assertQuiet()

    def test_modules_of_the_step_open_by_keys(self):
        browser = self.open(self.page())
        self.show("graph")
        parts = "return [...document.querySelectorAll('[role=tree] .tree-part')].map(b => b.dataset.path)"
        closed = browser.run(parts)
        self.assertTrue(any("Sequential" in path for path in closed), closed)
        _, before = self.colours("#graph-canvas")
        browser.run("const part = [...document.querySelectorAll('[role=treeitem][aria-expanded=false] > .tree-part')]"
                    "[0]; part.focus(); window.opened = part.dataset.path;")
        browser.keys("Enter")
        browser.wait_for("return [...document.querySelectorAll('[role=treeitem]')].some(i => "
                         "i.getAttribute('aria-expanded') === 'true' && "
                         "i.querySelector('.tree-part').dataset.path === window.opened)")
        self.assertEqual(browser.run("return document.activeElement.dataset.path === window.opened"), True)
        self.show("graph")
        self.assertNotEqual(self.colours("#graph-canvas")[1], before)
        # What the tree counts is the step.
        calls = browser.run("return [...document.querySelectorAll('[role=tree] > li > .tree-part .faint')]"
                            ".map(e => parseInt(e.textContent.replace(',', '')))")
        shown = browser.run("return document.querySelector('[data-section=graph] .count').textContent")
        self.assertEqual(sum(calls), int(shown.replace(",", "")))
        self.assertQuiet()

    def test_findings_are_those_that_lint_counts_with_their_source(self):
        done = self.acltape("lint", self.trace, "--no-results", code=1)
        counts = re.search(r"^(.*) in \d+ rules? in", done.out, re.MULTILINE).group(1)  # "2 errors, 1 notice"
        rules = [line.split()[0] for line in done.out.split("\nfindings\n")[1].split("\n\n")[0].splitlines()[2:]]
        for trace in (self.trace, self.linted):  # made for the page, and stored by lint
            browser = self.open(self.page(trace=trace))
            self.show("findings")
            self.assertIn(f"findings: {counts}.", browser.text("#main > section:not([hidden])"))
            cards = browser.run("return [...document.querySelectorAll('[data-name=findings] .finding header .mono')]"
                                ".map(e => e.textContent)")
            self.assertEqual(cards, rules)
            self.assertIn("loss", browser.text("[data-name=findings] pre.source"))

    def test_the_number_of_a_tab_is_what_it_lists(self):
        browser = self.open(self.page(trace=self.full))
        badges = browser.run("return Object.fromEntries([...document.querySelectorAll('[data-section]')].map(b => "
                             "[b.dataset.section, b.querySelector('.count')?.textContent.replace(',', '')]))")
        info = {row["fact"]: row["value"] for row in self.json("info", self.full)["trace"]}
        self.show("operators")
        rows = browser.run("return document.querySelectorAll('[data-name=operators] tbody tr').length")
        self.assertEqual(int(badges["operators"]), rows)
        self.assertEqual(info["ops"], rows)
        self.assertEqual(int(badges["timeline"]), info["calls"])
        for name, listed in (("findings", "document.querySelectorAll('[data-name=findings] .finding')"),
                             ("measurements", "document.querySelector('[data-name=measurements] .tablebox')"
                              ".querySelectorAll('tbody tr')"),
                             ("bisections", "document.querySelectorAll('[data-name=bisections] .finding')")):
            self.show(name)
            self.assertEqual(int(badges[name] or 0), browser.run(f"return {listed}.length"), name)
        self.show("overview")
        cards = browser.run("return Object.fromEntries([...document.querySelectorAll('.card')].map(c => "
                            "[c.querySelector('.what').textContent, c.querySelector('.figure').textContent]))")
        self.assertEqual(cards["findings"], badges["findings"])

    def test_light_and_dark(self):
        page = self.page()
        browser = self.open(page)
        ground = "return getComputedStyle(document.body).backgroundColor"
        light = browser.run(ground)
        browser.keys("t")
        self.assertNotEqual(browser.run(ground), light)
        browser.click_on("#theme")
        self.assertEqual(browser.run(ground), light)
        dark = self.open(page, dark=True)
        self.assertNotEqual(dark.run(ground), light)

    def test_a_narrow_window_names_each_section(self):
        for width in (560, 820):
            with webdriver.Browser(width, 900) as browser:
                browser.open("file://" + self.page())
                browser.wait_for("return document.documentElement.dataset.ready")
                for name in NAMES:
                    x, y, wide, high = browser.box(f"[data-section={name}]")
                    self.assertGreater(wide * high, 0)
                    named = browser.run(
                        "const b = document.querySelector(`[data-section=${arguments[0]}]`);"
                        "const k = b.querySelector('.key');"
                        "return b.title && [b.querySelector('.label').checkVisibility() && b.innerText, k.textContent, "
                        "getComputedStyle(k, '::before').content].some(t => t && t !== 'none')", name)
                    self.assertTrue(named, name)
                title, search = browser.box("#title"), browser.box("#search-text")
                self.assertLessEqual(title[0] + title[2], search[0])

    def test_says_which_part_is_shown(self):
        browser = self.open(self.page("--max-calls", "100"))
        self.assertIn("earliest 100 of", browser.text("#main"))
        for name in NAMES:
            self.show(name)
        self.assertQuiet()

    def test_a_trace_without_calls(self):
        trace = self.path("empty.db")
        shutil.copy(self.trace, trace)
        database = sqlite3.connect(trace)
        for table in ("call_row", "call_extra", "step", "scope_range", "buffer_row", "snapshot"):
            database.execute(f"DELETE FROM {table}")
        database.commit()
        database.close()
        self.open(self.page(trace=trace))
        for name in NAMES:
            self.show(name)
        self.assertQuiet()


@needs_browser
class Hostile(PageTest):
    def test_nothing_that_a_trace_says_runs(self):
        trace = self.path("hostile.db")
        shutil.copy(self.trace, trace)
        number = [0]

        def hostile(*unused):
            number[0] += 1
            return INJECTIONS[number[0] % len(INJECTIONS)] + str(number[0])

        database = sqlite3.connect(trace)
        database.create_function("hostile", -1, hostile)
        places = {"op": ["name", "overload", "schema"], "scope": ["name", "path"], "thread": ["name"],
                  "process": ["name"], "ledger": ["kind", "subject", "cause", "remedy"],
                  "signature_argument": ["name"]}
        for table, columns in places.items():
            for column in columns:
                database.execute(f"UPDATE {table} SET {column} = hostile({column})")
        command = json.dumps(["python3", *INJECTIONS])
        for key in ("command", "host", "torch_version", "cwd", "torch_library"):
            database.execute("INSERT OR REPLACE INTO meta(key, value) VALUES (?, ?)",
                             (key, command if key == "command" else hostile()))
        for row in range(12):
            database.execute("INSERT INTO finding(rule, severity, call_id, code, message, evidence, verdict) "
                             "VALUES (hostile(), hostile(), ?, 1, hostile(), ?, hostile())",
                             (row + 3, json.dumps({"edit": hostile(), "calls": [hostile(), 4], "count": hostile(),
                                                  "codes": {hostile(): hostile()}})))
            database.execute("INSERT INTO ledger(kind, severity, count, subject, cause, remedy) "
                             "VALUES (hostile(), 'notice', ?, hostile(), hostile(), hostile())", (row,))
            database.execute("INSERT INTO witness(kind, options, plan_id, call_id, position, message, verdict, "
                             "command) "
                             "VALUES (hostile(), '{}', 0, ?, 0, hostile(), hostile(), hostile())", (row + 3,))
        for run in range(1, 4):
            database.execute("INSERT INTO run(run_id, mode, device, options, begin_ns, exit_code) "
                             "VALUES (?, hostile(), hostile(), '{}', 1, 0)", (run,))
            for row in range(20):
                database.execute("INSERT INTO sample(run_id, repetition, step, host_ns, device_ns) "
                                 "VALUES (?, ?, 1, ?, ?)", (run, row, 1000 + row, 2000 + row))
            database.execute("INSERT INTO comparison(run_id, step, call_id, position, metrics, verdict) "
                             "VALUES (?, 1, 5, 0, '{}', hostile())", (run,))
        database.execute("INSERT OR REPLACE INTO buffer_role(buffer_id, role) "
                         "SELECT buffer_id, hostile() FROM buffer_row LIMIT 30")
        database.commit()
        database.close()
        journal = self.path("journal")
        with open(journal, "w") as file:
            file.write(json.dumps({"acltape_journal": 1}) + "\n")
            for _ in range(12):
                file.write(json.dumps({"experiment": hostile(), "altered": "0-3", "verdict": hostile(), "seconds": 1,
                                       "executions": 2, "evidence": {"op": hostile(), "call": hostile()}}) + "\n")
        page = self.page("--title", INJECTIONS[0], "--journal", journal, "--against", self.trace, trace=trace)
        with open(page) as file:
            text = file.read()
        self.assertNotIn("<img src=x", text)
        self.assertNotIn("hacked=1;alert", text.replace("\\u003cscript\\u003ewindow.hacked=1;alert", ""))

        browser = self.open(page)
        for name in NAMES:
            self.show(name)
            x, y, width, height = browser.box("#main")
            for index in range(4):  # text that appears under the pointer counts, too
                browser.move(x + width * (0.2 + 0.2 * index), y + height * (0.25 + 0.1 * index))
            self.assertFalse(browser.alert_is_open(), name)
        self.show("timeline")
        browser.keys("/", "e", "Enter")
        browser.wait_for("return document.querySelectorAll('#side .hit').length > 3")
        for _ in range(4):
            browser.keys("Escape", "n")
        self.assertFalse(browser.alert_is_open())
        self.assertIsNone(browser.run("return window.hacked === undefined ? null : window.hacked"))
        self.assertEqual(browser.run("return document.querySelectorAll('img, iframe, object, embed, link').length"), 0)
        self.assertEqual(browser.run("return document.querySelectorAll('body style').length"), 0)
        # The words themselves are there to be read.
        self.show("findings")
        self.assertIn("<img src=x onerror", browser.text("#main"))
        self.assertQuiet()

    def test_evidence_nested_without_end_is_text(self):
        trace = self.path("deep.db")
        shutil.copy(self.trace, trace)
        deep = "[" * 200_000 + "]" * 200_000
        database = sqlite3.connect(trace)
        database.execute("INSERT INTO finding(rule, severity, call_id, code, message, evidence, verdict) "
                         "VALUES ('LINT-25', 'notice', 3, 0, 'deep', ?, '')", (deep,))
        database.commit()
        database.close()
        journal = self.path("journal")
        with open(journal, "w") as file:
            file.write(json.dumps({"acltape_journal": 1}) + "\n")
            file.write('{"experiment": "e", "verdict": "v", "evidence": ' + deep + "}\n")
        browser = self.open(self.page("--journal", journal, trace=trace))
        self.show("findings")
        browser.wait_for("return document.querySelector('#main').textContent.includes('LINT-25')")

    def test_the_policy_stops_what_would_run(self):
        """The check above can fail: a page that put text in as HTML would still be stopped, and say so."""
        browser = self.open(self.page())
        browser.run("const e = document.createElement('div'); e.innerHTML = \"<img src=x onerror='window.hacked=1'>\";"
                    "document.body.append(e); const s = document.createElement('script'); "
                    "s.textContent = 'window.hacked=2';"
                    "document.body.append(s);")
        browser.wait_for("return true")
        self.assertIsNone(browser.run("return window.hacked === undefined ? null : window.hacked"))
        said = " ".join(entry["message"] for entry in browser.console())
        self.assertIn("Content Security Policy", said)


@needs_browser
class Against(PageTest):
    def test_two_traces_stand_side_by_side(self):
        other = self.path("other.db")
        self.record(other, TORCH_PYTHON, os.path.join(WORKLOADS, "mlp_train.py"), "--steps", "4", payload="all")
        browser = self.open(self.page("--against", other))
        self.show("against")
        text = browser.text("#main > section:not([hidden])")
        for word in ("mlp.db", "other.db", "B / A", "Median step", "aligned by dataflow", "of B that touch memory",
                     "aten::addmm"):
            self.assertIn(word, text)
        rows = browser.run("return [...document.querySelectorAll('[data-name=against] tbody tr')]"
                           ".map(r => [...r.children].map(c => c.textContent))")
        calls = {row[0]: row for row in rows}
        mine = self.json("query", self.trace, "SELECT count(*) AS n FROM call")[0]["n"]
        its = self.json("query", other, "SELECT count(*) AS n FROM call")[0]["n"]
        self.assertEqual([int(word.replace(",", "")) for word in calls["Calls"][1:3]], [mine, its])
        self.assertQuiet()

    def test_verdict_and_coverage_are_those_of_diff(self):
        script = os.path.join(WORKLOADS, "mlp_train.py")
        for name, options, payload, code in (("equal", [], "all", 0), ("other", ["--batch-size", "32"], "all", 1),
                                             ("little", [], "none", 125)):
            with self.subTest(trace=name):
                other = self.path(f"{name}.db")
                self.record(other, TORCH_PYTHON, script, "--steps", "6", *options, payload=payload)
                words = {row["quantity"]: row["value"]
                         for row in self.json("diff", self.trace, other, "--no-results", code=code)["summary"]}
                browser = self.open(self.page("--against", other))
                self.show("against")
                self.assertEqual(browser.run("return document.querySelector('[data-verdict]').dataset.verdict"),
                                 words["verdict"])
                text = browser.text("#main > section:not([hidden])")
                verdict = words["verdict"]
                self.assertIn(f"{verdict[0].upper()}{verdict[1:]}.", text)
                key = "leaves of A that compared results tell of"
                self.assertIn(f"{key[0].upper()}{key[1:]}: {words[key]}.", text)


@needs_browser
class OwnGraphs(CommandTest):
    """An engine in C++ that captures a graph itself, and streams without work."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        binary = os.path.join(cls.folder, "engine")
        source = os.path.join(SOURCE, "tests", "matrix", "programs", "engine.cpp")
        options = ["-I" + os.path.join(SOURCE, part) for part in ("tests/programs", "recorder/ranges")]
        done = subprocess.run([*acl_programs.build_line(source, binary, options=options), "-ldl"],
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        cls.trace = os.path.join(cls.folder, "engine.db")
        test = cls("skipTest")
        test.record(cls.trace, binary, payload="all", options=["--soft"])

    page = PageTest.page
    open = PageTest.open
    show = PageTest.show
    assertQuiet = PageTest.assertQuiet

    def test_details_of_a_graph_name_who_reads_its_memory_first(self):
        browser = self.open(self.page())
        self.show("own-graphs")
        heads = browser.run("return [...[...document.querySelectorAll('[data-name=own-graphs] table')].pop()"
                            ".querySelectorAll('th')].map(h => h.textContent)")
        rows = browser.run("return [...[...document.querySelectorAll('[data-name=own-graphs] table')].pop()"
                           ".querySelectorAll('tbody tr')].map(r => [...r.children].map(c => c.textContent))")
        column = heads.index("First read by")
        capture, = self.json("captures", self.trace)["captures"]
        self.assertTrue(rows)
        for row in rows:
            call, name = row[column].split(" ", 1)
            reads = self.json("query", self.trace,
                              "SELECT c.call_id, c.op FROM tensor_use u JOIN call c USING (call_id) "
                              f"WHERE u.buffer_id = {row[0]} AND c.model_id = {capture['graph']} "
                              "ORDER BY c.call_id LIMIT 1")
            self.assertEqual([{"call_id": int(call), "op": name}], reads)
        browser.run("[...document.querySelectorAll('[data-name=own-graphs] tbody .link')].find(l => "
                    "/aclnn/.test(l.textContent)).click()")
        self.assertIn("aclnn", browser.text("#side h2"))
        self.assertQuiet()

    def test_a_call_inside_an_executed_graph_shows_no_time(self):
        browser = self.open(self.page())
        self.show("graph")
        text = browser.text("[data-name=graph]")
        self.assertNotRegex(text, r"\b0 ns")
        self.assertIn("no time known", text)
        self.assertQuiet()

    def test_a_stream_has_a_row_if_the_host_put_work_on_it(self):
        trace = self.path("idle.db")
        shutil.copy(self.trace, trace)
        with sqlite3.connect(trace) as database:
            # Another stream, for which the host waits.
            database.execute("INSERT INTO stream(stream_id, process_id, device, flags) SELECT 77, process_id, device, "
                             "flags FROM stream LIMIT 1")
            database.execute("UPDATE call_extra SET stream_id = 77 WHERE call_id = (SELECT max(call_id) FROM call "
                             "WHERE op = 'aclrtSynchronizeStream')")
        browser = self.open(self.page(trace=trace))
        self.show("timeline")
        browser.keys("r")
        rows = browser.run("return [...document.querySelectorAll('#side .lane label')].map(l => l.textContent.trim())")
        worked = self.json("query", trace, "SELECT DISTINCT stream_id FROM call WHERE op GLOB 'aclnn*' OR op GLOB "
                           "'aclrtMemcpyAsync' OR op GLOB 'aclmdlRIExecute*' AND stream_id > 0 ORDER BY 1")
        self.assertEqual([row for row in rows if row.startswith("Stream")],
                         [f"Stream {row['stream_id']}" for row in worked])
        self.assertIn("no work on 1 stream, which has no row: 77.", browser.text("#side"))
        self.assertQuiet()


@needs_browser
class Ranks(CommandTest):
    """Two ranks in C++; the second one sleeps in front of each collective."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace = os.path.join(cls.folder, "late.db")
        program = os.environ.get("ACLTAPE_RANK_FAULTS", os.path.join(SOURCE, "build", "bin", "rank_faults"))
        cls("skipTest").record(cls.trace, program, "late", options=["--soft"])

    page = PageTest.page
    open = PageTest.open
    show = PageTest.show
    assertQuiet = PageTest.assertQuiet

    def shown(self, selector):
        return self.browser.run("return [...document.querySelectorAll(arguments[0])].map(e => e.textContent)",
                                f"[data-name=ranks] {selector}")

    def test_each_collective_is_a_line_through_the_tracks_with_its_calls(self):
        browser = self.open(self.page())
        self.show("ranks")
        self.assertEqual(self.shown("g.track text"), ["rank 0", "rank 1"])
        drawn = "return document.querySelectorAll('[data-name=ranks] g.meeting').length"
        self.assertEqual(browser.run(drawn), 12)
        self.assertIn("RANK-09", browser.text("[data-name=ranks] table"))
        browser.run("document.querySelector('[data-name=ranks] g.meeting:nth-of-type(5)')"
                    ".dispatchEvent(new MouseEvent('click', {bubbles: true}))")
        title, = self.shown("h3")
        number = int(re.search(r"number (\d+) of", title)[1])
        calls = self.json("query", self.trace, f"SELECT call_id FROM collective WHERE number = {number} ORDER BY rank")
        details = self.shown(".of-meeting tbody tr")
        self.assertEqual(len(details), 2)
        for call, row in zip(calls, details):
            self.assertIn(str(call["call_id"]), row)
            self.assertIn("rank_faults.cpp", row)
        for _ in range(3):
            browser.run("[...document.querySelectorAll('[data-name=ranks] button')]"
                        ".find(b => b.textContent === 'Zoom in').click()")
        self.assertLess(browser.run(drawn), 12)
        browser.run("[...document.querySelectorAll('[data-name=ranks] button')]"
                    ".find(b => b.textContent === 'All').click()")
        self.assertEqual(browser.run(drawn), 12)
        self.assertQuiet()

    def test_the_matrix_is_that_of_the_command(self):
        self.open(self.page())
        self.show("ranks")
        rows = self.json("ranks", self.trace)["who_waited_for_whom"]
        self.assertEqual({(row["rank"], row["waited_for"]) for row in rows},
                         {tuple(cells) for cells in self.browser.run(
                             "return [...[...document.querySelectorAll('[data-name=ranks] table')].pop()"
                             ".querySelectorAll('tbody tr')].map(r => [...r.children].slice(0, 2)"
                             ".map(c => c.textContent))")})
        self.assertEqual(self.browser.run("return document.querySelectorAll("
                                          "'[data-name=ranks] svg[aria-label^=Who] rect').length"), len(rows))
        self.assertQuiet()

    def test_nothing_that_a_communicator_is_called_runs(self):
        trace = self.path("hostile.db")
        for name in INJECTIONS:
            shutil.copy(self.trace, trace)
            with sqlite3.connect(trace) as database:
                database.execute("UPDATE communicator SET name = ?", (name,))
            browser = self.open(self.page(trace=trace))
            self.show("ranks")
            browser.run("document.querySelector('[data-name=ranks] g.meeting')"
                        ".dispatchEvent(new MouseEvent('click', {bubbles: true}))")
            self.assertFalse(browser.alert_is_open(), name)
            self.assertIsNone(browser.run("return window.hacked === undefined ? null : window.hacked"))
            self.assertQuiet()


if __name__ == "__main__":
    main()
