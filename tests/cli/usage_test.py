#!/usr/bin/env python3
"""Typical mistakes on the command line and the sentence that each gets, side by side."""
import json
import os

from harness import TORCH_PYTHON, CommandTest, main

PROGRAM = "import torch\nfor _ in range(6):\n    (torch.ones(3, 3) @ torch.ones(3, 3)).relu()"

# Words of the command line, exit code, what the sentence says. {t} is a trace, {o} a trace of
# another program, {p} a plan of {t}, {d} the folder of all.
MISTAKES = [
    ("recrod -- true", 2, "there is no command `recrod`; did you mean `record`?"),
    ("{t}", 2, "is a file, and the command comes first: acltape info {t}"),
    ("--format json info {t}", 2, "`--format` stands before the command"),
    ("info", 2, "info needs TRACE: acltape info TRACE; `acltape info --help` explains it."),
    ("diff {t}", 2, "diff needs B: acltape diff A B"),
    ("info {t} {o}", 2, "`{o}` is one argument too many: acltape info TRACE"),
    ("info {t} --fromat json", 2, "info has no option `--fromat`; did you mean `--format`?"),
    ("query {t} --name steps --mode all", 2, "query has no option `--mode`"),
    ("info {t} --streams 3", 2, "info has no option `--streams`; it is an option of plan and replay"),
    ("replay {t} -mode eager", 2, "replay has no option `-mode`; did you mean `--mode`?"),
    ("replay {t} --repet 3", 2, "did you mean `--repetitions`? `acltape replay --help`"),
    ("replay {t} --mode captrued", 2,
     "`--mode captrued` is none of captured|eager; did you mean `captured`?"),
    ("replay {t} --mode", 2, "`--mode` needs a value: captured|eager"),
    ("replay {t} --mode eager --mode eager", 2, "`--mode` is given more than once"),
    ("replay {t} --repetitions 0", 2, "`--repetitions`: '0' is not a whole number of at least 1"),
    ("replay {t} --seed x", 2, "`--seed` takes a whole number of at least 0, not 'x'"),
    ("compare {t} --confidence 2", 2, "`--confidence 2` is out of range; it takes 0.5 to 0.999"),
    ("plan {t} --budget-memory 64Q", 2, "write 65536, 64K, 16M or 1G"),
    ("bisect {t} --budget 5x", 2, "write 500ms, 30s, 5m or 2h"),
    ("replay {t} --allow-races", 2, "`--allow-races` goes with `--plan` only"),
    ("replay {t} --level cuda", 2, "`--level cuda` is none of aten|acl"),
    ("replay {t} --mode eager --plan {p}", 2,
     "`--plan` says what captured graphs hold, and `--mode eager` captures none"),
    ("replay {t} --streams flat", 2, "leave it out for leaves of PyTorch"),
    ("replay {p} --plan {t}", 2, "is a plan and stands in the place of the trace"),
    ("replay {t} --plan {t}", 2, "names a trace, not a plan; `acltape plan {t} -o plan.json`"),
    ("replay {o} --plan {p}", 2, "it was made for a trace of"),
    ("replay {t} --plan {d}/plam.json", 2, "did you mean '{p}'?"),
    ("info {d}/good.dbb", 3, "there is no trace '{d}/good.dbb'; did you mean '{t}'?"),
    ("info {d}/text.txt", 3, "is not a trace: it is not an SQLite file"),
    ("graph {t} step=3", 2, "selection: 'step=3' is not a number or a range"),
    ("lint {t} --region 5", 2, "'5' is no region; write the first and the last call"),
    ("query {t} top_opps", 2, "there is no query 'top_opps'; did you mean `top_ops`?"),
    ("query {t}", 2, "query needs SQL or --name"),
    ("export {t} --to chrome", 2, "export needs `--output`: acltape export TRACE --output PATH"),
    ("export {t} --to cp -o {d}/x", 2, "`--to cp` is none of"),
    ("torch ad", 2, "`ad` is none of add|list|remove; did you mean `add`?"),
    ("run --bogus -- true", 2, "run has no option `--bogus`"),
    ("run python3 -- true", 2, "'python3' stands before --, after which the program begins"),
    ("record -o {d}/x.db", 2, "record needs a program after `--`"),
    ("record --paylod all -- true", 2, "record has no option `--paylod`; did you mean `--payload`?"),
    ("record --record-steps 9-3 -- true", 2, "'9-3' names no steps for --record-steps; write 100-110"),
    ("record --record-steps 1-2 --no-composites -- true", 2, "leave one of the two out"),
    ("record --delay 5x -- true", 2, "'5x' is no time for --delay; write 5, 1.5s, 200ms or 2m"),
    ("record --duration 0 -- true", 2, "--duration 0 records nothing; write 5, 1.5s, 200ms or 2m"),
    ("record --delay 5 --start-closed -- true", 2, "leave one of the two out"),
    ("record --record-steps 2 --start-closed -- true", 2, "--record-steps opens the recording by itself"),
    ("lint {t} --format sarif --table findings", 2, "that `--format` prints none"),
    ("record --max-size 1K -- true", 2, "--max-size 1K is too small for a few steps; give at least 4M"),
    ("record --max-size big -- true", 2, "'big' is no size; write 65536, 64K, 16M or 1G"),
    ("record -o {d}/x.db -- {d}/train.py", 2,
     "name the interpreter: acltape record --output {d}/x.db -- python3 {d}/train.py"),
]


class Usage(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.names = {"d": cls.folder, "t": os.path.join(cls.folder, "good.db"),
                     "o": os.path.join(cls.folder, "unlike.db"),
                     "p": os.path.join(cls.folder, "plan.json")}
        test = cls("test_each_mistake_has_its_sentence")
        test.record(cls.names["t"], TORCH_PYTHON, "-c", PROGRAM)
        test.record(cls.names["o"], TORCH_PYTHON, "-c", PROGRAM + "\n    torch.ones(2).exp()")
        test.acltape("plan", cls.names["t"], "-o", cls.names["p"])
        for name in ("text.txt", "train.py"):
            with open(os.path.join(cls.folder, name), "w") as file:
                file.write("print('no trace')\n")

    def test_each_mistake_has_its_sentence(self):
        for line, code, sentence in MISTAKES:
            words = [word.format(**self.names) for word in line.split()]
            with self.subTest(line=line):
                self.assertSentence(self.acltape(*words, code=code),
                                    sentence.format(**self.names))

    def test_a_refused_replay_runs_without_the_option_that_it_names(self):
        trace, plan = self.names["t"], self.names["p"]
        self.acltape("replay", trace, "--plan", plan, "--mode", "captured", "--no-results")
        self.acltape("replay", trace, "--plan", plan, "--no-results")

    def test_emit_takes_its_arguments_in_either_order(self):
        trace, plan = self.names["t"], self.names["p"]
        now = self.acltape("emit", trace, plan, "--as", "json")
        self.assertEqual(now.err, "", now)
        before = self.acltape("emit", plan, trace, "--as", "json")
        self.assertEqual(json.loads(now.out), json.loads(before.out))
        self.assertSentence(before, "takes the trace first", f"acltape emit {trace} {plan}")

    def test_emit_of_two_files_that_are_no_trace(self):
        self.assertSentence(self.acltape("emit", self.names["p"], self.names["p"], code=3),
                            "not a trace")

    def test_a_query_is_named_by_its_word(self):
        trace = self.names["t"]
        self.assertEqual(self.acltape("query", trace, "top_ops").out,
                         self.acltape("query", trace, "--name", "top_ops").out)

    def test_one_of_several_tables(self):
        trace = self.names["t"]
        whole = self.json("info", trace)
        self.assertEqual(whole["format_version"], 1)
        self.assertEqual(self.json("info", trace, "--table", "trace"), whole["trace"])
        csv = self.acltape("info", trace, "--table", "Meta", "--format", "csv").out.splitlines()
        self.assertEqual(csv[0], "key,value")
        self.assertNotIn("", csv)
        self.assertSentence(self.acltape("info", trace, "--table", "nope", code=2),
                            "no table 'nope'", "trace, ")
        self.assertSentence(self.acltape("query", trace, "top_ops", "--table", "a", code=2),
                            "query prints one")

    def test_columns_of_a_query_keep_their_names(self):
        self.assertEqual(self.json("query", self.names["t"], 'SELECT 1 AS "My Name"'),
                         [{"My Name": 1}])


if __name__ == "__main__":
    main()
