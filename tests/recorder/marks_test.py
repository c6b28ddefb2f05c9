#!/usr/bin/env python3
"""Ranges and marks that a program reports to the vendor's tools are user ranges of its trace."""
import os
import sqlite3
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(SOURCE, "tests", folder) for folder in ("cli", "programs")]
import acl_programs  # noqa: E402
from harness import CommandTest, main  # noqa: E402

# A vendor's library while none of its tools listens: it gives no numbers, and knows none.
SILENT_TOOLS = """
#include <stdint.h>
#include <stdlib.h>
static int domain;
void mstxMarkA(const char* message, void* stream) {}
uint64_t mstxRangeStartA(const char* message, void* stream) { return 0; }
void mstxRangeEnd(uint64_t id) { if (id != 0) abort(); }
void* mstxDomainCreateA(const char* name) { return &domain; }
void mstxDomainDestroy(void* handle) {}
uint64_t mstxDomainRangeStartA(void* handle, const char* message, void* stream) { return 0; }
void mstxDomainRangeEnd(void* handle, uint64_t id) { if (id != 0) abort(); }
"""
# The ranges around each call of the program.
PATHS = [
    "outer/inner",
    # The first range ends in the trace when the second one, which began in it, has ended.
    "first/second", "first/second", None,
    "tools/in a domain",
    # Another thread ends the range, which the mark notices.
    "handed over", None]


class Marks(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.program = program = os.path.join(cls.folder, "marks_program")
        source = os.path.join(SOURCE, "tests", "recorder", "marks_program.cpp")
        subprocess.run(acl_programs.build_line(source, program), check=True)
        cls.environment = {**os.environ, "LD_LIBRARY_PATH": acl_programs.LIBRARIES}
        alone = subprocess.run([program], capture_output=True, text=True, check=True,
                               env=cls.environment)
        cls.trace = os.path.join(cls.folder, "marks.db")
        case = cls("test_ranges_of_a_program_enclose_its_calls")
        recorded = case.acltape("record", "-o", cls.trace, "--payload", "none", "--", program,
                                env=cls.environment)
        case.assertEqual(recorded.out, alone.stdout)

    def query(self, text, trace=None):
        return sqlite3.connect(trace or self.trace).execute(text).fetchall()

    def paths(self, trace):
        rows = self.query("SELECT path FROM call LEFT JOIN scope USING (scope_id) "
                          "WHERE op = 'aclrtMemset' ORDER BY call_id", trace)
        return [path for (path,) in rows]

    def test_ranges_of_a_program_enclose_its_calls(self):
        self.assertEqual(self.paths(self.trace), PATHS)

    def test_ranges_are_told_apart_though_the_library_gives_no_numbers(self):
        source, folder = self.path("tools.c"), self.path("silent")
        with open(source, "w") as file:
            file.write(SILENT_TOOLS)
        os.mkdir(folder)
        subprocess.run([acl_programs.COMPILERS[".c"], "-shared", "-fPIC", source, "-o",
                        os.path.join(folder, "libms_tools_ext.so")], check=True)
        trace = self.path("silent.db")
        self.acltape("record", "-o", trace, "--payload", "none", "--", self.program,
                     env={**os.environ, "LD_LIBRARY_PATH": f"{folder}:{acl_programs.LIBRARIES}"})
        self.assertEqual(self.paths(trace), PATHS)

    def test_marks_are_ranges_without_an_inside(self):
        paths = self.query("SELECT path, count(*) FROM scope_range JOIN scope USING (scope_id) "
                           "WHERE name IN ('a mark', 'of a stamp', 'of a text') GROUP BY path")
        self.assertEqual(sorted(paths), [("a mark", 1), ("of a stamp", 1), ("of a text", 1)])

    def test_every_range_has_ended(self):
        self.assertEqual(self.query("SELECT DISTINCT kind FROM scope"), [("user",)])
        self.assertEqual(self.query("SELECT count(*) FROM scope_range WHERE end_ns IS NULL")[0], (0,))
        self.assertEqual(self.query("SELECT count(*) FROM scope_range")[0], (10,))

    def test_a_marked_range_can_be_a_step(self):
        trace = self.path("steps.db")
        self.acltape("record", "-o", trace, "--payload", "none", "--steps-from", "tools", "--",
                     self.program, env=self.environment)
        steps = self.query("SELECT found_by FROM step_summary", trace)
        self.assertEqual(steps, [("range:tools",)])


if __name__ == "__main__":
    main()
