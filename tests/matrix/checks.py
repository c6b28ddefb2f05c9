"""The checks of the matrix. Each takes a cell that has run and says by cell.fail(kind, seen) what is wrong."""
import json
import os
import re
import shlex
import socket
import struct
import statistics
import xml.etree.ElementTree

from cells import NEXT_CODES

CRASHES = re.compile(r"internal error|Traceback|terminate called|Sanitizer|Assertion|Segmentation")
NEGATIVE_TIME = re.compile(r"(?<![\w.,-])-\d[\d.,]* ?(?:ns|us|ms|s)\b")
NUMBER = re.compile(r"(?<![\w.])\d{19}(?![\w.])")
NOT_A_NUMBER = re.compile(r"(?<![\w.-])-?nan\b(?!_)")
SIGNED = ("change", "error", "difference", "saves", "gain", "idle_from")  # columns in which a negative number is right
OVER = ("change", "error", "against")  # columns whose percent may be above 100


# What holds for every command.

def exit_code(cell):
    allowed = cell.program.codes.get(cell.command.name, cell.command.codes)
    allowed = tuple(allowed) if isinstance(allowed, (list, tuple)) else (allowed,)
    if cell.result.code is None:
        cell.fail("time limit", f"no end after {cell.command.seconds} s")
    elif cell.result.code not in allowed:
        said = (cell.result.err.strip() or cell.result.out.strip()).splitlines()
        cell.fail("exit code", f"{cell.result.code}, not one of {allowed}: {said[-1] if said else ''}")


def no_crash(cell):
    found = CRASHES.search(cell.result.err) or CRASHES.search(cell.result.out[-4000:])
    if found or (cell.result.code is not None and cell.result.code < 0):
        cell.fail("crash", cell.result.err[-300:])


def says_a_sentence(cell):
    """An error is one sentence."""
    if cell.result.code in (2, 3, 4, 70):
        said = [line for line in cell.result.err.splitlines() if line.startswith("acltape: ")]
        if not said:
            cell.fail("no sentence", cell.result.err[-200:])


def text_numbers(cell):
    if "json" in cell.command.checks:
        return
    text = cell.result.out
    if NEGATIVE_TIME.search(text):
        cell.fail("negative time", line_of(text, NEGATIVE_TIME))
    if any(is_bits(int(number)) for number in NUMBER.findall(text)):
        cell.fail("number as bits", line_of(text, NUMBER))
    if not cell.program.nan and NOT_A_NUMBER.search(text):
        cell.fail("not a number", line_of(text, NOT_A_NUMBER))
    for line in text.splitlines():
        found = re.match(r"^.*, % +(\S+)$", line)
        if found and is_number(found[1]) and not 0 <= float(found[1]) <= 100 and not any(w in line for w in OVER):
            cell.fail("share above 100", line)


def next_lines(cell):
    """Each command that is proposed runs and ends well."""
    for line in cell.result.err.splitlines():
        if not line.startswith("next: acltape "):
            continue
        words = shlex.split(line.removeprefix("next: acltape ").split("   ")[0])
        done = cell.run(words, 120)
        if done.code not in NEXT_CODES:
            said = (done.err.strip() or done.out.strip()).splitlines()
            cell.fail("next", f"{line}: exit code {done.code}: {said[-1] if said else ''}")


# What holds for some.

def numbers_of_json(cell):
    document = parsed(cell)
    if document is None:
        return
    for path, value in leaves(document):
        name = path[-1] if path else ""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        if is_time(path) and value < 0 and not any(word in name for word in SIGNED):
            cell.fail("negative time", f"{'.'.join(path)} {value}")
        if is_share(path) and not -0.05 <= value <= 100.05 and not any(word in ".".join(path) for word in OVER):
            cell.fail("share above 100", f"{'.'.join(path)} {value}")
        if isinstance(value, int) and is_bits(value) and not re.search(r"_id|address|seed|digest|call", name):
            cell.fail("number as bits", f"{'.'.join(path)} {value}")


def info(cell):
    calls, leaf_calls = cell.ask("SELECT count(*), sum(leaf) FROM call")[0]
    for name, count in (("calls", calls), ("leaves", leaf_calls)):
        if not re.search(rf"^{name} +{count}$", cell.result.out, re.M):
            cell.fail("totals", f"info's {name} are not the {count} of the view call")
    replayable = re.search(r"^replayable +(.*)$", cell.result.out, re.M)
    if cell.program.opaque and replayable and replayable[1].startswith("yes"):
        cell.fail("false assurance", replayable[0])


def top_ops(cell):
    found = parsed(cell) or []
    leaf_calls = cell.ask("SELECT sum(leaf) FROM call")[0][0]
    calls = sum(row["calls"] for row in found)
    if calls != leaf_calls:
        cell.fail("totals", f"top_ops has {calls} calls, the view call {leaf_calls} leaves")
    if sum(row["percent"] or 0 for row in found) > 100.5:
        cell.fail("share above 100", f"percents of top_ops add up to {sum(row['percent'] or 0 for row in found)}")


def top_lines(cell):
    if sum(row["share_percent"] or 0 for row in parsed(cell) or []) > 100.5:
        cell.fail("share above 100", "shares of top_lines add up to more than 100")


def capture_breaks(cell):
    """What ends a capture is work of the device, and has a line when the program is one of Python.

    How often the framework asks for an event depends on how quick the device is, and a thread of its backward pass,
    which has no Python, asks too."""
    found = parsed(cell)
    if cell.program.device == "npu" and isinstance(found, list):
        found = [row for row in found if row["op"] != "aclrtQueryEventStatus"]
        nowhere = [row for row in found if not row.get("where")]
        if found and len(nowhere) * 2 > len(found):
            cell.fail("no line", f"{len(nowhere)} of {len(found)} rows have no line")


def step_rows(cell):
    rows = parsed(cell)
    if isinstance(rows, list) and cell.program.steps is not None and len(rows) != cell.program.steps:
        cell.fail("steps", f"{len(rows)} rows, the program has {cell.program.steps} steps")


def step_count(cell):
    found = re.search(r"^steps +(\d+)$", cell.result.out, re.M)
    if cell.result.code == 0 and (not found or int(found[1]) != cell.program.steps):
        cell.fail("steps", f"{found and found[1]} steps, the program has {cell.program.steps}")


def ledger(cell):
    if cell.program.opaque and "memory" not in cell.result.out:
        cell.fail("false assurance", "the ledger does not say that tensors had no memory")


def first_nan(cell):
    found = parsed(cell)
    if isinstance(found, list):
        rows = [row for row in found if row.get("turns") == "NaN"]
        if len(rows) > cell.program.nan:
            cell.fail("false finding", f"{len(rows)} calls turn NaN, in the program {cell.program.nan} do: {rows[-1]}")
        if cell.program.nan and not found:
            cell.fail("missed", "no call turns NaN")


def captures(cell):
    facts = facts_of(parsed(cell))
    captured = facts.get("graphs captured")
    if facts and captured != cell.program.captured:
        cell.fail("totals", f"{captured} graphs captured, the program captures {cell.program.captured}")
    executed = sum(row.get("executions") or 0 for row in (parsed(cell) or {}).get("captures", []))
    if executed != cell.program.executed:
        cell.fail("totals", f"{executed} executions, the program has {cell.program.executed}")


def gears(cell):
    if re.search(r"eager ns per step +0\b|\b0 sizes", cell.result.out):
        cell.fail("empty answer", line_of(cell.result.out, re.compile(r"eager ns per step +0\b|\b0 sizes")))


def plan(cell):
    """A plan for a program whose graphs are never hit again saves nothing."""
    if cell.program.varies and re.search(r"pays after [1-9]\d? steps", cell.result.out):
        cell.fail("false promise", line_of(cell.result.out, re.compile("pays after")))


def plan_numbers(cell):
    document = parsed(cell)
    if not isinstance(document, dict):
        return
    facts = facts_of(document, "plan", "figure")
    if facts.get("calls captured", 0) > facts.get("calls of the step", 0):
        cell.fail("totals", f"{facts['calls captured']} captured of {facts['calls of the step']} calls")
    if cell.program.steps is not None and facts.get("steps") not in (None, cell.program.steps):
        cell.fail("steps", f"{facts['steps']} steps, the program has {cell.program.steps}")
    host = {row["per_step"]: row.get("host") for row in document.get("prediction", []) if "per_step" in row}
    eager = host.get("eager")
    # The plan's time is the median of all steps alike; the first one also waits for what starts up.
    wall = [row[0] for row in cell.ask("SELECT wall_ns FROM step_summary")]
    if eager and wall and not 0.02 * min(wall) < eager < 1.5 * max(wall):
        cell.fail("totals", f"plan's eager host time is {eager}, its steps took {min(wall)} to {max(wall)}")


def compare_numbers(cell):
    document = parsed(cell)
    if not isinstance(document, dict):
        return
    times = {(row["quantity"], row["execution"]): row for row in document.get("times", [])}
    for (quantity, execution), row in times.items():
        low, median, high = (row.get(name) for name in ("low", "median", "high"))
        if None not in (low, median, high) and not low <= median <= high:
            cell.fail("totals", f"{quantity} {execution}: median {median} not in {low}..{high}")
    for row in document.get("ratios", []):
        parts = [times.get((row.get("quantity"), name), {}).get("median") for name in ("eager", row.get("execution"))]
        if None in parts or not parts[1] or not row.get("median"):
            continue
        if not 0.8 < parts[0] / parts[1] / row["median"] < 1.25:
            cell.fail("ratio", f"{row}: the medians are {parts}")
    recorded = times.get(("host_per_step", "recorded"))
    wall = [row[0] for row in cell.ask("SELECT wall_ns FROM step_summary")]
    if recorded and wall and not 0.05 < recorded["median"] / statistics.median(wall) < 2:
        cell.fail("totals", f"compare's recorded step takes {recorded['median']}, one of step_summary "
                  f"{statistics.median(wall)}")


def lint_words(cell):
    rows = [row for row in cell.result.out.splitlines() if row.startswith("LINT-") and "aclrtQueryEventStatus" in row]
    if cell.program.device == "npu" and cell.program.has("aten") and rows:
        cell.fail("inside of the adapter", rows[0])


def findings(cell):
    """The findings are those that the program has: each of the table is found, and no other is serious."""
    document = parsed(cell)
    if not isinstance(document, dict):
        return
    found = document.get("findings", [])
    false = [row for row in found if row.get("severity") in ("error", "warning", "notice") and
             not any(is_finding(row, each) for each in (*cell.program.findings, *cell.program.possible))]
    for rule in sorted({row["rule"] for row in false}):
        rows = [row for row in false if row["rule"] == rule]
        cell.fail("false finding", f"{rule} {len(rows)} times: {rows[0]['severity']}: {rows[0].get('where')}: "
                  f"{rows[0]['message']}")
    if cell.command.name == "lint-json":
        for each in cell.program.findings:
            if not any(is_finding(row, each) for row in found):
                cell.fail("missed", f"{each} is not found")


def is_finding(row, known):
    """Returns whether a row is the finding "RULE" or "RULE@PLACE" of the table of programs."""
    rule, _, place = known.partition("@")
    return row["rule"] == rule and place in (row.get("where") or "")


def sarif(cell):
    document = parsed(cell)
    if document is None:
        return
    for path, value in leaves(document):
        if path and path[-1] == "uri" and isinstance(value, str) and (value.startswith("/") or "://" in value):
            if "originalUriBaseIds" in path or "helpUri" in path or "informationUri" in path:
                continue
            cell.fail("absolute address", f"{'.'.join(path)} {value}")
            return


def is_xml(cell):
    if cell.result.code not in (0, 1):
        return
    try:
        xml.etree.ElementTree.fromstring(cell.result.out)
    except xml.etree.ElementTree.ParseError as error:
        cell.fail("form", f"no XML: {error}")


def equal(cell):
    """A replay, or a diff of two recordings of one program, finds everything equal and says how much it saw."""
    if cell.result.code != 0:
        return
    if not re.search(r"equal", cell.result.out):
        cell.fail("no verdict", cell.result.out[-200:])
    if not re.search(r"leaves (of A )?that compared (outputs|results) tell of", cell.result.out):
        cell.fail("no coverage", cell.result.out[-200:])


def names_change(cell):
    """The first place that is named is the one that was changed."""
    if cell.result.code != 1:
        return
    if cell.program.changed_at not in cell.result.out:
        cell.fail("missed", f"{cell.program.changed_at} is not named")


def trimmed(cell):
    if cell.result.code != 0:
        return
    done = cell.run(["replay", "small.db"])
    if done.code != 0:
        cell.fail("trimmed", str(done)[-300:])
    done = cell.run(["info", "small.db"])
    if done.code != 0:
        cell.fail("trimmed", str(done)[-300:])


def packed(cell):
    if cell.result.code != 0:
        return
    if cell.ask("SELECT count(*) FROM call") != cell.ask("SELECT count(*) FROM call", "packed.db"):
        cell.fail("totals", "the packed trace has another number of calls")


def redacted(cell):
    if cell.result.code != 0:
        return
    with open(cell.path("redacted.db"), "rb") as file:
        content = file.read()
    words = {socket.gethostname(), os.path.expanduser("~") + "/", os.path.dirname(cell.program.source),
             cell.recordings.folder, os.getcwd()}
    for word in words:
        if len(word) > 4 and word.encode() in content:
            place = content.index(word.encode())
            cell.fail("redaction", f"{word} is left: {content[max(0, place - 40):place + 80]!r}")


def chrome(cell):
    if cell.result.code == 0:
        with open(cell.path("t.json"), encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        early = [event for event in events if event.get("dur", 0) < 0 or event.get("ts", 0) < 0]
        if early:
            cell.fail("negative time", str(early[0]))


def page(cell):
    if cell.result.code != 0:
        return
    size = os.path.getsize(cell.path("page.html"))
    if size < 10_000:
        cell.fail("empty answer", f"the page has {size} bytes")


# What they share.

def parsed(cell):
    if cell.result.code not in (0, 1):
        return None
    try:
        return json.loads(cell.result.out)
    except json.JSONDecodeError as error:
        if not any(failure.kind == "form" for failure in cell.failures):
            cell.fail("form", f"no JSON: {error}")
        return None


def facts_of(document, table="facts", key="fact"):
    return {row[key]: row["value"] for row in (document or {}).get(table, [])}


def leaves(value, path=()):
    """Each value inside of lists and objects, with the names that lead to it; a row of a fact adds its name."""
    if isinstance(value, dict):
        label = next((value[name] for name in ("fact", "figure", "quantity") if isinstance(value.get(name), str)), None)
        for name, part in value.items():
            yield from leaves(part, path + ((label, name) if label and name == "value" else (name,)))
    elif isinstance(value, list):
        for part in value:
            yield from leaves(part, path)
    else:
        yield path, value


def is_time(path):
    return path[-1].endswith("_ns") or (len(path) > 1 and path[-1] == "value" and path[-2].endswith(", ns"))


def is_share(path):
    name = path[-2] if path[-1] == "value" and len(path) > 1 else path[-1]
    return "percent" in name or name.endswith(", %") or name == "gap"


def is_bits(value):
    """Returns whether a whole number looks like the bits of a double, of a size that programs use."""
    return value >= 0x3C << 56 and 1e-12 < struct.unpack("d", struct.pack("q", value))[0] < 1e12


def is_number(text):
    return re.fullmatch(r"-?\d+(\.\d+)?", text) is not None


def line_of(text, pattern):
    return next((line for line in text.splitlines() if pattern.search(line)), "")


CHECKS = {
    "every": (exit_code, no_crash, says_a_sentence, text_numbers, next_lines),
    "json": numbers_of_json, "info": info, "top_ops": top_ops, "top_lines": top_lines,
    "capture_breaks": capture_breaks, "step_rows": step_rows, "step_count": step_count, "ledger": ledger,
    "first_nan": first_nan, "captures": captures, "gears": gears, "plan": plan, "plan_numbers": plan_numbers,
    "compare_numbers": compare_numbers, "lint_words": lint_words, "findings": findings, "sarif": sarif, "xml": is_xml,
    "equal": equal, "names_change": names_change, "trimmed": trimmed, "packed": packed, "redacted": redacted,
    "chrome": chrome, "page": page,
}
