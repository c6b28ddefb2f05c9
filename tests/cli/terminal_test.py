#!/ usr / bin / env python3
"""Output on a terminal: tables that fit it, colours, the pager. Elsewhere nothing of it."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

from harness import BINARY, TORCH_PYTHON, CommandTest, Result, main, run

PROGRAM = "import torch\nfor _ in range(6):\n    (torch.rand(3, 3) @ torch.ones(3, 3)).relu()"
CODES = re.compile("\x1b\\[[0-9;]*m")
LONG = "SELECT call_id AS n, 'call' AS what FROM call UNION ALL SELECT call_id, 'again' FROM call"


class Terminal(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace = os.path.join(cls.folder, "t.db")
        cls("test_a_wide_table_fits").record(cls.trace, TORCH_PYTHON, "-c", PROGRAM, payload="all")

    def on_terminal(self, *words, code=0, columns=80, lines=24, **environment):
        """Runs acltape with stdout on a terminal; gives stdout without carriage returns."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        settings = {name: value for name, value in os.environ.items()
                    if name not in ("NO_COLOR", "COLUMNS", "LINES", "PAGER", "LESS")}
        settings.update({"TERM": "xterm", "ACLTAPE_PAGER": "cat"}, **environment)
        command = [BINARY, *words]
        process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=subprocess.PIPE,
                                   text=True, env=settings)
        os.close(slave)
        out = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:  # the terminal is closed
                break
            out += piece
        os.close(master)
        err = process.stderr.read()
        process.stderr.close()
        process.wait()
        done = subprocess.CompletedProcess(command, process.returncode,
                                           out.decode().replace("\r\n", "\n"), err)
        result = Result(command, done)
        self.assertEqual(result.code, code, result)
        return result

    def pager(self, script):
        path = self.path("pager.sh")
        with open(path, "w") as file:
            file.write(f"#!/bin/sh\n{script}\n")
        os.chmod(path, 0o755)
        return path

    def test_a_wide_table_fits(self):
        for columns in (60, 80, 120):
            result = self.on_terminal("replay", self.trace, "--no-results", columns=columns)
            lines = CODES.sub("", result.out).splitlines()
            self.assertGreater(len(lines), 15, result)
            self.assertLessEqual(max(map(len, lines)), columns, result)

    def test_every_table_fits_80_columns(self):
        plan = self.path("narrow.json")
        for words in ("info", "steps", "lint --no-results --fail-on never", "graph", f"plan -o {plan}",
                      "replay --mode captured", f"replay --plan {plan}", "compare",
                      f"compare --plan {plan}", "query --name top_ops", "query --name top_lines"):
            command, *options = words.split()
            with self.subTest(words=words):
                result = self.on_terminal(command, self.trace, *options)
                lines = CODES.sub("", result.out).splitlines()
                self.assertGreater(len(lines), 3, result)
                self.assertLessEqual(max(map(len, lines)), 80, result)

    def test_a_message_without_room_stands_below_its_row(self):
        out = CODES.sub("", self.on_terminal("lint", self.trace, "--no-results", code=1).out)
        self.assertRegex(out, "\n    message: aten::rand draws random numbers")
        self.assertNotRegex(out, "comes\\s+from <string>")
        self.assertNotIn("    message:", self.acltape("lint", self.trace, "--no-results",
                                                      code=1).out)

    def test_sizes_have_units_for_people(self):
        size = os.path.getsize(self.trace)
        self.assertRegex(self.acltape("info", self.trace).out, "size +[0-9.]+ [KM]iB\n")
        facts = {row["fact"]: row["value"] for row in self.json("info", self.trace)["trace"]}
        self.assertEqual(facts["bytes"], size)

    def test_wrapped_text_is_all_there(self):
        sql = f"SELECT 7 AS number, '{' '.join(f'word{i}' for i in range(40))}' AS text"
        wrapped = CODES.sub("", self.on_terminal("query", self.trace, sql, columns=50).out)
        words = wrapped.split()
        self.assertEqual([word for word in words if word.startswith("word")],
                         [f"word{i}" for i in range(40)])
        self.assertLessEqual(max(map(len, wrapped.splitlines())), 50)

    def test_wide_characters_count_twice(self):
        sql = "SELECT '" + "\u91cd" * 40 + "' AS text, 'end' AS last"
        result = self.on_terminal("query", self.trace, sql, columns=40)
        lines = CODES.sub("", result.out).splitlines()
        shown = [line for line in lines if "\u91cd" in line]
        self.assertEqual(sum(line.count("\u91cd") for line in shown), 40)
        for line in shown:
            self.assertLessEqual(len(line) + line.count("\u91cd"), 40, result)

    def test_empty_columns_are_left_out_on_a_terminal_only(self):
        sql = "SELECT 1 AS kept, NULL AS dropped, '' AS too"
        narrow = CODES.sub("", self.on_terminal("query", self.trace, sql).out)
        self.assertEqual(narrow.split()[0], "kept")
        self.assertNotIn("dropped", narrow)
        wide = CODES.sub("", self.on_terminal("query", self.trace, sql, "--wide").out)
        self.assertEqual(wide.split()[:3], ["kept", "dropped", "too"])
        for words in ((), ("--format", "csv")):
            self.assertIn("dropped", self.acltape("query", self.trace, sql, *words).out)
        self.assertEqual(self.json("query", self.trace, sql)[0]["dropped"], None)

    def test_wide_lines_are_those_of_a_file(self):
        words = ("lint", self.trace, "--no-results", "--wide", "--color", "never")
        self.assertEqual(self.on_terminal(*words, code=1).out, self.acltape(*words, code=1).out)

    def test_columns_of_the_environment_come_first(self):
        sql = f"SELECT '{'x ' * 60}' AS text"
        out = CODES.sub("", self.on_terminal("query", self.trace, sql, COLUMNS="30").out)
        self.assertLessEqual(max(map(len, out.splitlines())), 30)

    def test_colours_are_for_terminals(self):
        words = ("lint", self.trace, "--no-results")
        coloured = self.on_terminal(*words, code=1).out
        self.assertRegex(coloured, "\x1b\\[[0-9]+mnotice\x1b\\[0m")
        self.assertNotIn("\x1b", self.acltape(*words, code=1).out)
        self.assertIn("\x1b", self.acltape(*words, "--color", "always", code=1).out)
        for plain in (self.on_terminal(*words, "--color", "never", code=1),
                      self.on_terminal(*words, code=1, NO_COLOR="1"),
                      self.on_terminal(*words, code=1, TERM="dumb")):
            self.assertNotIn("\x1b", plain.out, plain)
        csv = self.on_terminal(*words, "--format", "csv", code=1)
        self.assertNotIn("\x1b", csv.out, csv)

    def test_long_output_goes_through_the_pager(self):
        pager = self.pager('cat > "$SEEN"')
        seen = self.path("seen.txt")
        result = self.on_terminal("query", self.trace, LONG, lines=10, ACLTAPE_PAGER=pager,
                                  SEEN=seen)
        self.assertEqual(result.out, "")
        with open(seen) as file:
            self.assertIn("again", file.read())

    def test_short_output_and_other_formats_of_it_need_no_pager(self):
        pager = self.pager('touch "$SEEN"')
        seen = self.path("unseen.txt")
        result = self.on_terminal("query", self.trace, "SELECT 1 AS one", ACLTAPE_PAGER=pager,
                                  SEEN=seen)
        self.assertIn("one", result.out)
        self.assertFalse(os.path.exists(seen))

    def test_no_pager_and_cat_print_at_once(self):
        pager = self.pager('touch "$SEEN"')
        seen = self.path("untouched.txt")
        for words, name in ((("--no-pager",), pager), ((), "cat"), ((), "")):
            result = self.on_terminal("query", self.trace, LONG, *words, lines=10,
                                      ACLTAPE_PAGER=name, PAGER=pager, SEEN=seen)
            self.assertIn("again", result.out)
        self.assertFalse(os.path.exists(seen))

    def test_pager_of_the_environment(self):
        seen = self.path("by_pager.txt")
        settings = dict(os.environ, PAGER=self.pager('cat > "$SEEN"'), SEEN=seen)
        settings.pop("ACLTAPE_PAGER", None)
        script = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
        subprocess.run([TORCH_PYTHON, "-c", script, BINARY, "query", self.trace, LONG],
                       check=True, stdin=subprocess.DEVNULL, capture_output=True, env=settings)
        self.assertTrue(os.path.exists(seen))

    def test_the_pager_changes_no_exit_code(self):
        for script in ("cat > /dev/null", "exit 3", "head -1 > /dev/null", "kill -9 $$"):
            self.on_terminal("lint", self.trace, "--no-results", code=1, lines=5,
                             ACLTAPE_PAGER=self.pager(script))

    def test_a_pager_that_is_not_there_loses_nothing(self):
        result = self.on_terminal("query", self.trace, LONG, lines=5,
                                  ACLTAPE_PAGER="/no/such/pager")
        self.assertIn("again", result.out)

    def test_an_error_comes_after_the_output_and_keeps_its_code(self):
        result = self.on_terminal("query", self.trace, "SELECT nope FROM call", code=2,
                                  ACLTAPE_PAGER=self.pager("cat"))
        self.assertIn("nope", result.err)

    def test_a_reader_that_goes_away_is_no_failure(self):
#The signal is ignored here, as some shells and services leave it.
        script = (f"trap '' PIPE; {BINARY} query {self.trace} --format csv "
                  "'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 200000) "
                  "SELECT i FROM n' | head -1")
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True)
        self.assertEqual((done.stdout, done.stderr), ("i\n", ""))

    def test_output_that_cannot_be_written_is_said(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([BINARY, "info", self.trace], stdout=full,
                                  stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 4)
        self.assertIn("the output cannot be written", done.stderr)

    def test_what_to_do_next_is_for_people(self):
        self.assertIn(f"next: acltape steps {self.trace}", self.acltape("info", self.trace).err)
        for name in ("csv", "json"):
            self.assertEqual(self.acltape("info", self.trace, "--format", name).err, "")

    def test_every_command_that_is_named_next_can_be_given(self):
        plan = self.path("plan.json")
        given = ("info", "steps", "graph", "lint", "replay", "compare",
                 f"plan -o {plan}", f"replay --plan {plan}", f"compare --plan {plan}",
                 "replay --mode captured", f"prove --plan {plan} --trials 1",
                 f"trim --calls 1- --force -o {self.path('small.db')}",
                 f"pack --force -o {self.path('packed.db')}")
        named = set()
        for words in given:
            command, *options = words.split()
            result = run(BINARY, command, self.trace, *options, cwd=self.folder)
            self.assertIn(result.code, (0, 1), result)
            next_lines = [line for line in result.err.splitlines() if line.startswith("next: ")]
            self.assertEqual(len(next_lines), 1, result)
            named.add(next_lines[0].removeprefix("next: "))
        for line in named:
            with self.subTest(line=line):
                again = run("sh", "-c", line, cwd=self.folder, env=dict(
                    os.environ, PATH=f"{os.path.dirname(BINARY)}:{os.environ['PATH']}"))
                self.assertIn(again.code, (0, 1), again)

    def test_what_to_do_next_keeps_the_level(self):
        result = self.acltape("steps", self.trace, "--level", "aten")
        self.assertIn(f"next: acltape plan {self.trace} -o plan.json --level aten", result.err)


if __name__ == "__main__":
    main()
