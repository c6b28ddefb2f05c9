"""The tables of the matrix: programs, commands, and cells that are known to fail."""
import dataclasses
import os
import tomllib

FOLDER = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(FOLDER))
PLACES = (os.path.join(FOLDER, "programs"), os.path.join(SOURCE, "bench", "workloads"),
          os.path.join(SOURCE, "tests", "programs"))


@dataclasses.dataclass(frozen=True)
class Program:
    """A row of programs.toml, which says what its columns mean."""
    name: str
    run: tuple
    device: str
    levels: str
    python: str = ""
    record: tuple = ()
    payload: str = "all"
    steps: int | None = None
    captured: int = 0
    executed: int = 0
    processes: int = 1
    ranks: int = 0
    trains: bool = False
    nan: int = 0
    varies: bool = False
    opaque: bool = False
    window: bool = False
    changed: tuple = ()
    changed_at: str = ""
    findings: tuple = ()
    possible: tuple = ()
    codes: dict = dataclasses.field(default_factory=dict)

    @property
    def source(self):
        """The file of the program."""
        for place in PLACES:
            path = os.path.join(place, self.run[0])
            if os.path.exists(path):
                return path
        raise FileNotFoundError(f"{self.name}: no folder of the matrix has {self.run[0]}")

    @property
    def is_compiled(self):
        return self.run[0].endswith((".c", ".cpp"))

    def has(self, fact):
        """Returns whether a word of the column `needs` holds for this program."""
        if fact.startswith("not "):
            return not self.has(fact[4:])
        if fact in ("aten", "acl"):
            return fact in self.levels.split(",")
        # The level of PyTorch alone keeps no values of a device.
        keeps_values = self.payload == "all" and (self.device != "npu" or self.has("acl"))
        known = {"values": keeps_values, "one process": self.processes == 1,
                 "several processes": self.processes > 1, "steps": self.steps is not None}
        return known[fact] if fact in known else bool(getattr(self, fact))


@dataclasses.dataclass(frozen=True)
class Command:
    """A row of commands.toml, which says what its columns mean."""
    name: str
    words: tuple
    before: tuple = ()
    needs: tuple = ()
    codes: tuple = (0,)
    checks: tuple = ()
    seconds: int = 60

    def applies_to(self, program):
        if any("{changed}" in word for word in self.words) and not program.changed:
            return False
        return all(program.has(fact) for fact in self.needs)

    def uses(self, word):
        """Returns whether the command or one before it has the word, such as "{again}"."""
        return any(word in part for words in (self.words, *self.before) for part in words)


@dataclasses.dataclass(frozen=True)
class Known:
    """A cell of known.toml that fails today: program and command by name, or "*", and the kind of failure."""
    kind: str
    why: str
    program: str = "*"
    command: str = "*"

    def covers(self, program, command, kind):
        return (self.program in ("*", program) and self.command in ("*", command) and self.kind == kind)


def rows(name, kind):
    """The rows of a table of this folder as objects of `kind`."""
    with open(os.path.join(FOLDER, name + "s.toml" if name != "known" else "known.toml"), "rb") as file:
        found = tomllib.load(file).get(name, [])
    return [kind(**{key: frozen(value) for key, value in row.items()}) for row in found]


def frozen(value):
    return tuple(frozen(part) for part in value) if isinstance(value, list) else value


def programs():
    return rows("program", Program)


def commands():
    return rows("command", Command)


def known():
    return rows("known", Known)
