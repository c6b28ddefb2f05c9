#!/usr/bin/env python3
"""The corpus of lint: small ACL programs with one thing that goes wrong when they are captured, each
with a clean twin, and what lint has to say of them.

  corpus.py page docs/lint_rules.md     writes the generated parts of the page
  corpus.py check docs/lint_rules.md    exit code 1 when they are not what it would write

The environment names acltape (ACLTAPE_BINARY), the SDK (ACLTAPE_SDK) and the compiler (ACLTAPE_CXX).
"""
import collections
import json
import os
import subprocess
import sys
import tempfile

FOLDER = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(FOLDER))
sys.path.insert(0, os.path.join(SOURCE, "tests", "programs"))
import acl_programs  # noqa: E402

ACLTAPE = os.environ.get("ACLTAPE_BINARY", os.path.join(SOURCE, "build", "bin", "acltape"))
MODES = ("global", "thread_local", "relaxed")

# A program with one mistake. `expected`: rule -> codes in the three modes, None: nothing is
# refused.
Case = collections.namedtuple("Case", "name expected options environment", defaults=((), {}))


def everywhere(code):
    return (code, code, code)


NOWHERE = everywhere(None)

CASES = (
    Case("unjoined_fork", {"LINT-01": everywhere(107025)}),
    Case("work_after_join", {"LINT-01": everywhere(107025)}),
    Case("stream_sync", {"LINT-02": everywhere(107027)}),
    Case("stream_query", {"LINT-02": everywhere(107027)}),
    Case("device_sync", {"LINT-02": everywhere(107027)}),
    Case("sync_in_own_capture", {"LINT-02": everywhere(107027)}),
    Case("synchronous_copy", {"LINT-03": (107030, 107030, None)}),
    Case("fill_of_another_thread", {"LINT-03": (107030, None, None)}),
    Case("allocation", {"LINT-04": NOWHERE}),
    Case("pageable_copy", {"LINT-05": everywhere(107000)}),
    Case("pageable_copy_elsewhere", {"LINT-05": (107041, 107041, None)}),
    Case("captured_event_query", {"LINT-06": everywhere(107028)}),
    Case("captured_event_sync", {"LINT-06": everywhere(107028)}),
    Case("shared_event", {"LINT-36": everywhere(107032)}),
    Case("outside_event", {"LINT-07": everywhere(107024)}),
    Case("old_event", {"LINT-31": everywhere(207000)}),
    # The stream that could not be forked then runs outside, and so does its event.
    Case("fork_of_default_stream", {"LINT-33": everywhere(107031), "LINT-32": NOWHERE,
                                    "LINT-07": everywhere(107024)}),
    Case("default_stream_origin", {"LINT-33": everywhere(207000)}),
    Case("end_on_wrong_stream", {"LINT-34": everywhere(107036)}),
    Case("end_in_wrong_thread", {"LINT-35": (107038, 107038, None)}),
    Case("copy_in_task_group", {"LINT-37": everywhere(507009)}),
    Case("many_graphs", {"LINT-08": everywhere(207005)}, ("--stream-limit", "40")),
    Case("freed_address", {"LINT-10": everywhere(507011)}),
    Case("pool_allocation", {"LINT-02": everywhere(107027)}),
    Case("pool_free_race", {"LINT-19": NOWHERE, "LINT-51": NOWHERE}),
    Case("shared_memory", {"LINT-18": NOWHERE}),
    Case("shared_memory_of_two_streams", {"LINT-18": NOWHERE}),
    # A stream without an event is outside of the capture too.
    Case("eager_race", {"LINT-19": NOWHERE, "LINT-32": NOWHERE}),
    Case("captured_race", {"LINT-20": NOWHERE, "LINT-19": NOWHERE}),
    Case("uncaptured_work", {"LINT-32": NOWHERE}),
    Case("update_race", {"LINT-21": NOWHERE}),
    Case("late_update_race", {"LINT-21": NOWHERE}),
    Case("host_function", {"LINT-29": NOWHERE}),
    Case("environment", {"LINT-30": NOWHERE}, environment={"TASK_QUEUE_ENABLE": "2"}),
)


# PyTorch programs, by what each step does: {dirty} is the line with the failure, {clean} its twin.
LeafCase = collections.namedtuple("LeafCase", "name expected dirty clean")
LEAF_PROGRAM = """
import torch
import torch.nn.functional as F
torch.manual_seed(0)
kept = []
x, w, out, spare = torch.rand(16, 16), torch.rand(16, 16), torch.empty(16, 16), torch.empty(16, 16)
other, third = torch.rand(16, 16), torch.rand(16, 16)
for step in range(6):
    with torch.profiler.record_function("step"):
        torch.mm(x, w, out=out)
        {line}
        torch.mul(out, w, out=spare)
"""
LEAF_CASES = (
    LeafCase("item", {"LINT-38": everywhere(107027)}, "out.sum().item()", "out.sum()"),
    LeafCase("nonzero", {"LINT-38": everywhere(107027)}, "torch.nonzero(out)", "torch.sign(out)"),
    LeafCase("mask", {"LINT-38": everywhere(107027)}, "out[out > 0.5]", "torch.where(out > 0.5, out, w)"),
    LeafCase("dropout", {"LINT-25": NOWHERE}, "F.dropout(out, 0.5, True)", "F.dropout(out, 0.5, False)"),
    LeafCase("scalar", {"LINT-14": NOWHERE}, "torch.add(out, w, alpha=step, out=spare)",
             "torch.add(out, w, alpha=2, out=spare)"),
    LeafCase("length", {"LINT-22": NOWHERE}, "torch.roll(out, [step], [0])", "torch.roll(out, [1], [0])"),
    LeafCase("moved_input", {"LINT-15": NOWHERE}, "torch.add((other, third)[step % 2], out, out=spare)",
             "torch.add(other, out, out=spare)"),
    LeafCase("late_result", {"LINT-17": NOWHERE, "LINT-15": NOWHERE},
             "kept.append(out + w); kept[max(step - 2, 0)].neg()",
             "kept.append(out + w); kept[step].neg()"),
    LeafCase("operators", {"LINT-16": NOWHERE}, "torch.abs(out) if step % 2 else torch.neg(out)",
             "torch.abs(out)"),
    LeafCase("first_step", {"LINT-12": NOWHERE},
             "torch.tanh(out) if step == 0 else torch.abs(out)", "torch.abs(out)"),
)


class Failure(Exception):
    """A command that did not do what it should, with what it printed."""


def run(command, codes=(0,), **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, **options)
    if done.returncode not in codes:
        raise Failure(f"$ {' '.join(command)}\nexit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(folder):
    binary = os.path.join(folder, "failures")
    source = os.path.join(FOLDER, "failures.cpp")
    line = acl_programs.build_line(source, binary)
    run(line + ["-I" + acl_programs.FOLDER, "-std=c++17"])
    return binary


def record(folder, binary, case, clean):
    """The trace of a case or of its clean twin."""
    trace = os.path.join(folder, case.name + (".clean" if clean else "") + ".db")
    program = "unjoined_fork" if case.name == "environment" else case.name
    twin = clean or case.name == "environment"
    environment = acl_programs.environment({} if clean else case.environment)
    run([ACLTAPE, "record", "--force", "--quiet", "--level", "acl", "--payload", "inputs", "-o", trace,
         "--", binary, program] + (["--clean"] if twin else []), env=environment)
    return trace


def lint(trace, *options):
    """Findings, probes and the exit code."""
    environment = acl_programs.environment()
    environment.pop("LD_LIBRARY_PATH")
    command = [ACLTAPE, "lint", trace, "--format", "json", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    if done.returncode not in (0, 1):
        raise Failure(f"$ {' '.join(command)}\nexit code {done.returncode}\n{done.stdout}{done.stderr}")
    report = json.loads(done.stdout)
    return report, done.returncode


Judgement = collections.namedtuple("Judgement", "case clean expected findings probes")


def judge_all(folder):
    """Every case and its clean twin, linted and probed."""
    binary = build(folder)
    judgements = []
    for case in CASES:
        for clean in (False, True):
            report, _ = lint(record(folder, binary, case, clean), "--prove", *case.options)
            judgements.append(Judgement(case, clean, {} if clean else case.expected,
                                        report["findings"], report["probes"]))
    return judgements


def record_leaves(folder, case, clean, python):
    """The trace of a PyTorch program."""
    name = case.name + (".clean" if clean else "")
    program, trace = (os.path.join(folder, "leaf_" + name + ending) for ending in (".py", ".db"))
    with open(program, "w") as file:
        file.write(LEAF_PROGRAM.replace("{line}", case.clean if clean else case.dirty))
    run([ACLTAPE, "record", "--force", "--quiet", "--steps-from", "step", "--payload", "none", "-o", trace,
         "--", python, program])
    return trace


def judge_leaves(folder, python):
    judgements = []
    for case in LEAF_CASES:
        for clean in (False, True):
            report, _ = lint(record_leaves(folder, case, clean, python))
            judgements.append(Judgement(case, clean, {} if clean else case.expected,
                                        report["findings"], []))
    return judgements


def torch_python():
    """An interpreter that has PyTorch."""
    for candidate in (os.environ.get("ACLTAPE_PYTHON"), "python3", "/usr/bin/python3"):
        if candidate and subprocess.run([candidate, "-c", "import torch"],
                                        capture_output=True).returncode == 0:
            return candidate
    raise Failure("no Python interpreter with PyTorch; name one by ACLTAPE_PYTHON")


class Score:
    def __init__(self):
        self.programs = self.expected = self.found = self.right = 0
        self.codes = self.reproduced = 0

    @staticmethod
    def share(part, whole):
        return "-" if whole == 0 else f"{part / whole:.2f}"


def measure(judgements):
    """Returns for each failure mode: programs, findings, precision, recall, codes met on the device."""
    rules = {rule["rule"]: rule for rule in json.loads(run([ACLTAPE, "lint", "--rules", "--format", "json"]))}
    scores = collections.defaultdict(Score)
    for case, _, expected, findings, _ in judgements:
        # Rules about no failure mode have no row.
        expected = [rule for rule in expected if rules[rule]["mode"]]
        for mode in {rules[rule]["mode"] for rule in case.expected if rules[rule]["mode"]}:
            scores[mode].programs += 1
        found = {finding["rule"] for finding in findings if rules[finding["rule"]]["mode"]}
        for rule in expected:
            scores[rules[rule]["mode"]].expected += 1
        for rule in found:
            scores[rules[rule]["mode"]].found += 1
            scores[rules[rule]["mode"]].right += rule in expected
        for finding in findings:
            if not rules[finding["rule"]]["mode"]:
                continue
            score = scores[rules[finding["rule"]]["mode"]]
            score.codes += finding["verdict"] != "predicted"
            score.reproduced += finding["verdict"] == "reproduced"
    return scores


def corpus_table(judgements):
    lines = ["| mode | programs | should be found | found | precision | recall | judged on the device | as predicted |",
             "|---|---|---|---|---|---|---|---|"]
    scores = measure(judgements)
    total = Score()
    for mode in sorted(scores):
        score = scores[mode]
        lines.append(f"| {mode} | {score.programs} | {score.expected} | {score.found} "
                     f"| {Score.share(score.right, score.found)} | {Score.share(score.right, score.expected)} "
                     f"| {score.codes} | {score.reproduced} |")
        for name in ("expected", "found", "right", "codes", "reproduced"):
            setattr(total, name, getattr(total, name) + getattr(score, name))
    lines.append(f"| all | {2 * len(CASES) + 2 * len(LEAF_CASES)} | {total.expected} | {total.found} "
                 f"| {Score.share(total.right, total.found)} | {Score.share(total.right, total.expected)} "
                 f"| {total.codes} | {total.reproduced} |")
    return "\n".join(lines)


def rules_table():
    rows = json.loads(run([ACLTAPE, "lint", "--rules", "--format", "json"]))
    lines = ["| rule | mode | severity | what goes wrong | source | global, thread_local, relaxed | at | what to do |",
             "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        codes = ", ".join(str(row[mode] or "-") for mode in MODES)
        if len({row[mode] for mode in MODES}) == 1:
            codes = str(row[MODES[0]] or "-")
        lines.append(f"| {row['rule']} | {row['mode'] or '-'} | {row['severity']} | {row['title']} | {row['source']} "
                     f"| {codes} | {row['fails_at']} | {row['edit']} |")
    return "\n".join(lines)


def with_part(page, name, text):
    """The page with the text between its two marks."""
    begin, end = f"<!-- {name}: begin -->\n", f"\n<!-- {name}: end -->"
    head, rest = page.split(begin)
    return head + begin + text + end + rest.split(end)[1]


def generated(page, judgements):
    return with_part(with_part(page, "rules", rules_table()), "corpus", corpus_table(judgements))


def main():
    action, path = sys.argv[1:]
    with open(path) as file:
        page = file.read()
    with tempfile.TemporaryDirectory(prefix="acltape_lint_") as folder:
        made = generated(page, judge_all(folder) + judge_leaves(folder, torch_python()))
    if action == "page":
        with open(path, "w") as file:
            file.write(made)
    elif made != page:
        sys.exit(f"{path} is not what this writes: run {sys.argv[0]} page {path}")


if __name__ == "__main__":
    main()
