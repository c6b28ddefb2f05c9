"""The command that a result prints is the one that was given, and nothing that was given is dropped."""
import os
import re
import shlex

import harness
from harness import BINARY, TORCH_PYTHON, CommandTest, run

# The product of a captured step; the eager replay before it makes the first four.
FAULT = "aclnnMm #6 flip=23"
# Words that commands need besides the trace, so that they get as far as to open it.
MORE = {
    "diff": ["{trace}"], "emit": ["{plan}", "--as", "fx"], "export": ["--to", "cpp", "--calls", "1", "-o", "{new}"],
    "graph": ["--dependencies"], "pack": ["-o", "{new}"], "plan": ["-o", "{new}"], "query": ["top_ops"],
    "gate": ["--write-baseline", "{new}"],
    "redact": ["-o", "{new}"],
    "report": ["-o", "{new}"], "trim": ["--calls", "1", "-o", "{new}"],
}


class GivenCommands(CommandTest):
    def setUp(self):
        self.trace = self.trace_of_steps("given trace.db")

    def commands_with(self, option):
        names = re.findall(r"^  ([a-z]+) {2,}", run(BINARY, "--help").out, re.MULTILINE)
        self.assertGreater(len(names), 25)
        return [name for name in names if option in run(BINARY, name, "--help").out]

    def words(self, command):
        plan = self.path("plan.json")
        if not os.path.exists(plan):
            self.acltape("plan", self.trace, "-o", plan)
        new = self.path(f"new{len(os.listdir(os.path.dirname(self.trace)))}")  # nothing has this name
        places = {"trace": self.trace, "plan": plan, "new": new}
        return [command, self.trace, *(word.format(**places) for word in MORE.get(command, []))]

    def test_a_replay_with_a_difference_prints_every_option_that_was_given(self):
        given = ["replay", self.trace, "--mode", "captured", "--streams", "leaves", "--data",
                 "synthesised", "--mismatches", "3", "--seed", "7", "--no-results"]
        result = self.acltape(*given, code=1, env={**os.environ, "ACLTAPE_SOFT_FAULTS": FAULT})
        command = f"ACLTAPE_SOFT_FAULTS='{FAULT}' acltape {shlex.join(given)}"
        self.assertIn(command, re.sub(r"\s*\n\s+", " ", result.out), result)
        again = self.reproduces(command)
        # All is as before but for times.
        untimed = [re.sub(r"(?m)^capture cost .*$", "", text) for text in (again.out, result.out)]
        self.assertEqual(*untimed)

    def test_spread_refuses_what_it_cannot_carry(self):
        for words in (["--edit", "LINT-09"], ["--streams", "flat"], ["--streams", "recorded"]):
            result = self.acltape("replay", self.trace, "--spread", *words, code=2)
            self.assertSentence(result, "--spread", "leave out " + words[0])

    def test_spread_carries_the_standard_and_the_seed(self):
        given = ["replay", self.trace, "--spread", "--standard", "ascend", "--seed", "7"]
        report = self.json(*given, code=1,
                           env={**os.environ, "ACLTAPE_SOFT_FAULTS": "aclnnMm #2 flip=29"})
        printed = {row["quantity"]: row["value"] for row in report["summary"]}["reproduce"]
        for word in ("--standard ascend", "--seed 7", "--spread"):
            self.assertIn(word, printed)

    def test_an_experiment_of_a_bisection_has_its_level(self):
        call = self.json("query", self.trace, "SELECT max(call_id) AS id FROM call WHERE op = "
                         "'aten::mm' AND leaf")[0]["id"]
        environment = {**os.environ, "ACLTAPE_LEVEL": "aten"}
        report = self.json("bisect", self.trace, "--plant", f"wrong_bits@{call}", "--no-journal",
                           "--max-memory", "8G", code=1, env=environment)
        printed = {row["quantity"]: row["value"] for row in report["summary"]}["reproduce"]
        for word in ("acltape experiment", "--level aten", "--max-memory 8G", f"wrong_bits@{call}"):
            self.assertIn(word, printed)
        self.assertNotIn("ACLTAPE_LEVEL", printed)
        self.reproduces(printed)

    def test_every_command_looks_at_the_process_that_was_asked_for(self):
        commands = self.commands_with("--process ")
        self.assertGreater(len(commands), 15)
        for command in commands:
            with self.subTest(command=command):
                result = self.acltape(*self.words(command), "--process", "99", code=2)
                self.assertSentence(result, "'99' is no process of")
                result = self.acltape(*self.words(command), code=2,
                                      env={**os.environ, "ACLTAPE_PROCESS": "98"})
                self.assertSentence(result, "'98' is no process of")

    def test_every_command_looks_at_the_level_that_was_asked_for(self):
        commands = self.commands_with("--level aten|acl")
        self.assertGreater(len(commands), 12)
        for command in commands:
            if command == "report":
                continue  # a page says it in the place of what it cannot show
            with self.subTest(command=command):
                words = self.words(command)
                result = self.acltape(*words, "--level", "acl", code=3)
                self.assertSentence(result, "holds no call of the ACL interface")
                result = self.acltape(*words, code=3, env={**os.environ, "ACLTAPE_LEVEL": "acl"})
                self.assertSentence(result, "holds no call of the ACL interface")

    def test_a_command_of_the_whole_trace_does_not_read_the_variables(self):
        environment = {**os.environ, "ACLTAPE_PROCESS": "98", "ACLTAPE_LEVEL": "acl"}
        for command in ("info", "redact"):
            self.acltape(*self.words(command), "--force" if command == "redact" else "--wide",
                         env=environment)
        self.acltape("query", self.trace, "SELECT 1", env=environment)
        for option in (["--process", "1"], ["--level", "aten"]):
            result = self.acltape("query", self.trace, "SELECT 1", *option, code=2)
            self.assertSentence(result, "write the condition into the WHERE")
        trace = self.path("recorded.db")
        self.acltape("record", "-o", trace, "--", TORCH_PYTHON, self.script(harness.STEPS), env=environment)
        self.assertGreater(len(self.json("query", trace, "SELECT * FROM step")), 1)

    def test_a_variable_of_no_level_is_one_sentence(self):
        result = self.acltape("replay", self.trace, code=2,
                              env={**os.environ, "ACLTAPE_LEVEL": "leaves"})
        self.assertSentence(result, "ACLTAPE_LEVEL", "'leaves'", "aten or acl")

    def test_a_check_is_told_the_level_and_the_process(self):
        call = "1"
        script = self.path("check.sh")
        with open(script, "w") as file:
            file.write(f'echo "$ACLTAPE_LEVEL $ACLTAPE_PROCESS" > {shlex.quote(self.path("told"))}\n'
                       "test -z \"$ACLTAPE_CALLS\"\n")
        result = self.acltape("bisect", self.trace, "--check", f"sh {shlex.quote(script)}",
                              "--no-journal", "--level", "aten", "--process", call, code=1)
        with open(self.path("told")) as file:
            self.assertEqual(file.read(), "aten 1\n")
        printed = re.sub(r"\s*\n\s+", " ", result.out)
        self.assertIn("ACLTAPE_PROCESS=1 ACLTAPE_LEVEL=aten ACLTAPE_CALLS=", printed)


if __name__ == "__main__":
    harness.main()
