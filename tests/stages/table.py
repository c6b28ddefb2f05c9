"""The stages of scripts/test (stages.toml), and which test of a build folder belongs to which."""
import collections
import dataclasses
import fnmatch
import json
import os
import subprocess
import tomllib

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(FOLDER))
TABLE = os.path.join(FOLDER, "stages.toml")
COSTS = os.path.join(FOLDER, "costs.tsv")
RUNS = ("test", "ci", "all")
KINDS = ("compiled", "script")


@dataclasses.dataclass(frozen=True)
class Stage:
    """A row of the table; stages.toml says what its columns mean."""
    name: str
    does: str
    budget: int
    runs: tuple = ()
    tests: tuple = ()
    default_of: str = ""
    build: str = "release"
    labels: tuple = ()
    shares: int = 1
    always: tuple = ()

    @property
    def of_release(self):
        return bool(self.tests or self.default_of)

    @property
    def has_tests(self):
        return self.of_release or bool(self.labels)


@dataclasses.dataclass(frozen=True)
class Test:
    name: str
    command: tuple
    properties: dict

    @property
    def kind(self):
        """A test program by itself, or a script of Python that starts programs."""
        return "script" if os.path.basename(self.command[0]).startswith("python3") else "compiled"

    @property
    def labels(self):
        return self.properties.get("LABELS", [])

    def listed(self, name):
        value = self.properties.get(name, [])
        return [value] if isinstance(value, str) else value


def read(path=TABLE):
    """The stages by their names, in the order of the table."""
    with open(path, "rb") as file:
        rows = tomllib.load(file)["stage"]
    rows = [{key: tuple(value) if isinstance(value, list) else value for key, value in row.items()} for row in rows]
    return {row["name"]: Stage(**row) for row in rows}


def of_run(stages, run):
    """The stages of a run in their order."""
    return [stage for stage in stages.values() if run == "all" or run in stage.runs]


def list_tests(folder):
    """Every test that ctest knows in a build folder."""
    shown = subprocess.run(["ctest", "--test-dir", folder, "--show-only=json-v1"], check=True, text=True,
                           stdout=subprocess.PIPE).stdout
    return [Test(test["name"], tuple(test.get("command", ())) or (test["name"],),
                 {row["name"]: row["value"] for row in test.get("properties", [])})
            for test in json.loads(shown)["tests"]]


def matches(name, patterns):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def stages_of(test, stages):
    """The stages that take a test of the release build: those that name it, else those with a pattern for it,
    else that for tests of its kind. It has one."""
    rows = stages.values()
    return ([stage for stage in rows if test.name in stage.tests] or
            [stage for stage in rows if matches(test.name, stage.tests)] or
            [stage for stage in rows if stage.default_of == test.kind])


def tests_of(stage, stages, tests):
    """The tests of a stage among those of its build folder."""
    if stage.labels:
        return [test for test in tests if test.kind == "compiled" and set(stage.labels) & set(test.labels)]
    return [test for test in tests if stage in stages_of(test, stages)]


def costs(path=COSTS):
    """Processor seconds by test, as they were kept last."""
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    return {name: float(seconds) for name, seconds in rows}


def in_shares(stage, tests, known):
    """Returns the tests of each share of a stage: the tests that always run, and its part of the others.

    The others are dealt out by their costs, the dearest first, each to the share that has the least so far. One
    whose cost is not known counts as the median of those that are.
    """
    shares = [[test for test in tests if matches(test.name, stage.always)] for _ in range(stage.shares)]
    loads = [0.0] * stage.shares
    turns = [test for test in tests if not matches(test.name, stage.always)]
    own = sorted(known[test.name] for test in turns if test.name in known)
    usual = own[len(own) // 2] if own else 1.0
    for test in sorted(turns, key=lambda test: (-known.get(test.name, usual), test.name)):
        least = loads.index(min(loads))
        shares[least].append(test)
        loads[least] += known.get(test.name, usual)
    return shares


def with_fixtures(chosen, tests):
    """The chosen tests and those that set up what they require."""
    required = {fixture for test in chosen for fixture in test.listed("FIXTURES_REQUIRED")}
    names = {test.name for test in chosen}
    return [test for test in tests if test.name in names or required & set(test.listed("FIXTURES_SETUP"))]


def commit_number():
    """A number of the commit that is checked out; 0 without git."""
    done = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return int(done.stdout[:8], 16) if done.returncode == 0 else 0


def doubled(tests):
    return [name for name, count in collections.Counter(test.name for test in tests).items() if count > 1]


def write_costs(known, path=COSTS):
    with open(path, "w", encoding="utf-8") as file:
        file.write("# Seconds of processor time by test of the release build; scripts/test --keep writes them.\n")
        file.writelines(f"{name}\t{seconds:.1f}\n" for name, seconds in sorted(known.items()))
