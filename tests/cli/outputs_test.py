#!/usr/bin/env python3
"""No command destroys what is the user's: every output of every command, by every name that it must not write."""
import collections
import hashlib
import os
import resource
import shutil
import signal
import sqlite3
import struct
import subprocess

from harness import BINARY, TORCH_PYTHON, WORKLOADS, CommandTest, main

# words: {t} is the trace, {p} its plan, {out} the output. name: the output's name when none is given.
# kind: "file", "trace" or "folder". force: it takes --force. own: it replaces what it wrote before.
# makes: the codes of a run that writes it; none: only refusals are tried, because a run takes long.
Output = collections.namedtuple("Output", "words kind force own makes name", defaults=("", "", (), ""))
OUTPUTS = {
    "plan": Output("plan {t} --no-results -o {out}", "file", "--force", "own", (0,)),
    "plan, by default": Output("plan {t} --no-results", "file", "--force", "own", (0,), "plan.json"),
    "emit": Output("emit {t} {p} --as json -o {out}", "file", "--force", "", (0,)),
    "lint": Output("lint {t} --no-results --write-baseline {out}", "file", "", "own", (0,)),
    "report": Output("report {t} -o {out}", "file", "--force", "", (0,)),
    "report, by default": Output("report {t}", "file", "--force", "", (0,), "t.html"),
    "export, perfetto": Output("export {t} --to perfetto -o {out}", "file", "--force", "", (0,)),
    "export, chrome": Output("export {t} --to chrome -o {out}", "file", "--force", "", (0,)),
    "bisect --journal": Output("bisect {t} --no-results --budget 5s --journal {out}", "journal"),
    "bisect --restart": Output("bisect {t} --no-results --budget 5s --restart --journal {out}", "journal"),
    "pack": Output("pack {t} -o {out}", "trace", "--force", "", (0,)),
    "redact": Output("redact {t} -o {out}", "trace", "--force", "", (0,)),
    "trim": Output("trim {t} --calls 5-12 -o {out}", "trace", "--force", "", ()),
    "record": Output("record -o {out} --keep-empty -- true", "trace", "--force", "", (0,)),
    "record, by default": Output("record --keep-empty -- true", "trace", "--force", "", (0,), "acltape.db"),
    "export, cpp": Output("export {t} --to cpp --calls 5-12 -o {out}", "folder", "--force"),
    "bisect --emit": Output("bisect {t} --no-results --no-journal --budget 5s --emit {out}", "folder", "--force"),
    "man": Output("man --folder {out}", "folder", "", "own", (0,)),
}
IN_FOLDER = {"man": ("acltape.1", "acltape-plan.1")}
REPRODUCER = ("repro.cpp", "repro.bin", "README.md", "trace.db", "run.log")


class Place:
    """A folder with a trace, its plan and a file of the user."""

    def __init__(self, folder, trace, plan):
        self.folder = folder
        os.mkdir(folder)
        shutil.copy(trace, self.path("t.db"))
        shutil.copy(plan, self.path("p.json"))
        with open(self.path("mine"), "w") as file:
            file.write("precious\n")

    def path(self, name):
        return os.path.join(self.folder, name)

    def held(self):
        """Returns what each name leads to."""
        held = {}
        for top, folders, files in os.walk(self.folder):
            for name in folders + files:
                path = os.path.join(top, name)
                if os.path.islink(path):
                    held[path] = "link to " + os.readlink(path)
                elif os.path.isfile(path):
                    with open(path, "rb") as file:
                        held[path] = hashlib.sha256(file.read()).hexdigest()
                else:
                    held[path] = "other"
        return held


def small_files(limit=16):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


class OutputsTest(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.good, cls.plan = cls.folder + "/good.db", cls.folder + "/good.json"
        for words in (("record", "-o", cls.good, "--", TORCH_PYTHON, WORKLOADS + "/mlp_train.py", "--steps", "4"),
                      ("plan", cls.good, "--no-results", "-o", cls.plan)):
            subprocess.run([BINARY, *words], capture_output=True, check=True)

    def place(self):
        number = sum(name.startswith("place") for name in os.listdir(self.folder))
        return Place(self.path(f"place{number}"), self.good, self.plan)

    def run_output(self, place, output, name, *more, code=2, **options):
        """Runs the command in the place; `name` is the output's, as it stands in the folder."""
        words = output.words.format(t="t.db", p="p.json", out=name).split()
        end = words.index("--") if "--" in words else len(words)
        result = subprocess.run([BINARY, *words[:end], *more, *words[end:]], cwd=place.folder, capture_output=True,
                                text=True, timeout=60, stdin=subprocess.DEVNULL, **options)
        said = f"\n$ acltape {' '.join(words[:end] + list(more) + words[end:])}\n{result.returncode}\n{result.stderr}"
        if isinstance(code, int):
            self.assertEqual(result.returncode, code, said)
        else:
            self.assertIn(result.returncode, code, said)
        return said

    def assertRefused(self, place, output, name, *more, says=""):
        """Code 2, the sentence, and nothing was changed."""
        before = place.held()
        said = self.run_output(place, output, name, *more)
        self.assertIn(says, said)
        self.assertEqual(place.held(), before, said)

    def each(self, *kinds):
        return [(label, output) for label, output in OUTPUTS.items() if output.kind in kinds]

    FILES = ("file", "trace", "journal")


class Outputs(OutputsTest):
    def test_the_trace_is_no_output_under_any_name(self):
        for label, output in self.each(*self.FILES):
            with self.subTest(output=label):
                if output.words.startswith("record"):
                    continue  # reads no trace
                for make, name in ((None, "t.db"), (None, "../{here}/t.db"), (os.link, "hard"), (os.symlink, "soft")):
                    place = self.place()
                    name = output.name or name.format(here=os.path.basename(place.folder))
                    if output.name and make is None:
                        continue
                    if make is os.link:
                        os.link(place.path("t.db"), place.path(name))
                    elif make is os.symlink:
                        os.symlink("t.db", place.path(name))
                    for force in filter(None, ("none", output.force)):
                        more = () if force == "none" else (force,)
                        self.assertRefused(place, output, name, *more, says="is the trace itself")

    def test_files_that_belong_to_the_trace_are_no_output(self):
        for label, output in self.each(*self.FILES):
            with self.subTest(output=label):
                if output.words.startswith("record") or output.name:
                    continue
                for name in ("t.db-journal", "t.db-wal", "t.db.spool"):
                    self.assertRefused(self.place(), output, name, says="belongs to the trace")

    def test_nothing_is_written_through_a_link(self):
        for label, output in self.each(*self.FILES):
            with self.subTest(output=label):
                name = output.name or "out"
                for target in ("mine", "not_there"):
                    place = self.place()
                    os.symlink(target, place.path(name))
                    for force in {"", output.force}:
                        self.assertRefused(place, output, name, *filter(None, [force]), says="is a link")

    def test_what_is_no_plain_file_is_no_output(self):
        for label, output in self.each(*self.FILES):
            with self.subTest(output=label):
                name = output.name or "out"
                for make, says in ((os.mkdir, "is a folder"), (os.mkfifo, "is not a regular file")):
                    place = self.place()
                    make(place.path(name))
                    for force in {"", output.force}:
                        self.assertRefused(place, output, name, *filter(None, [force]), says=says)

    def test_what_exists_stays_without_force(self):
        for label, output in self.each("file", "trace"):
            with self.subTest(output=label):
                name = output.name or "out"
                place = self.place()
                os.rename(place.path("mine"), place.path(name))
                self.assertRefused(place, output, name, says="exists already")
        for label in ("bisect --journal", "bisect --restart"):
            with self.subTest(output=label):
                place = self.place()
                before = place.held()
                said = self.run_output(place, OUTPUTS[label], "mine", code=(2, 3))
                self.assertIn("is no journal", said)
                self.assertEqual(place.held(), before)

    def test_what_exists_is_replaced_with_force_and_keeps_its_rights(self):
        for label, output in self.each("file", "trace"):
            with self.subTest(output=label):
                if not output.force or not output.makes:
                    continue
                name = output.name or "out"
                place = self.place()
                os.rename(place.path("mine"), place.path(name))
                os.chmod(place.path(name), 0o600)
                before = place.held()
                self.run_output(place, output, name, "--force", code=output.makes)
                after = place.held()
                self.assertNotEqual(after.pop(place.path(name)), before.pop(place.path(name)))
                self.assertEqual(after, before, "another file came, went or changed")
                if output.kind != "trace" or "record" not in label:
                    self.assertEqual(os.stat(place.path(name)).st_mode & 0o777, 0o600)

    def test_what_a_command_wrote_before_it_writes_again(self):
        for label, output in self.each("file"):
            with self.subTest(output=label):
                if not output.own:
                    continue
                name = output.name or "out"
                place = self.place()
                for _ in range(2):
                    self.run_output(place, output, name, code=output.makes)

    def test_a_plan_that_was_edited_stays(self):
        place = self.place()
        with open(place.path("p.json")) as file:
            text = file.read()
        self.assertIn('"capture_mode": "relaxed"', text)
        with open(place.path("p.json"), "w") as file:
            file.write(text.replace('"capture_mode": "relaxed"', '"capture_mode": "global"'))
        self.assertRefused(place, OUTPUTS["plan"], "p.json", says="exists already")

    def test_a_failure_leaves_the_old_file(self):
        for label, output in self.each("file", "trace"):
            with self.subTest(output=label):
                if not output.makes or "record" in label:
                    continue
                name = output.name or "out"
                place = self.place()
                os.rename(place.path("mine"), place.path(name))
                before = place.held()
                said = self.run_output(place, output, name, *filter(None, [output.force]), code=(2, 4),
                                       preexec_fn=small_files)
                self.assertEqual(place.held(), before, said)

    def test_a_folder_that_is_not_there_is_told(self):
        for label, output in self.each("file", "trace"):
            with self.subTest(output=label):
                if output.makes and not output.name:
                    self.run_output(self.place(), output, "nowhere/out", code=4)

    def test_a_folder_of_outputs_keeps_what_is_in_it(self):
        for label, output in self.each("folder"):
            with self.subTest(output=label):
                for name in IN_FOLDER.get(label, REPRODUCER):
                    place = self.place()
                    os.mkdir(place.path("out"))
                    with open(place.path("out/" + name), "w") as file:
                        file.write("precious\n")
                    self.assertRefused(place, output, "out", says="exists already")
                    os.unlink(place.path("out/" + name))
                    os.symlink("../mine", place.path("out/" + name))
                    for force in {"", output.force}:
                        self.assertRefused(place, output, "out", *filter(None, [force]), says="is a link")
                    os.unlink(place.path("out/" + name))
                    os.link(place.path("t.db"), place.path("out/" + name))
                    if label != "man":
                        self.assertRefused(place, output, "out", output.force, says="is the trace itself")
                place = self.place()
                before = place.held()
                self.run_output(place, output, "mine", code=(2, 4))
                self.assertEqual(place.held(), before)

    def test_manual_pages_are_written_again(self):
        place = self.place()
        for _ in range(2):
            self.run_output(place, OUTPUTS["man"], "out", code=0)


class Replaced(OutputsTest):
    """A recording that replaces a trace."""

    def test_a_recording_of_nothing_leaves_the_trace_that_it_was_to_replace(self):
        place = self.place()
        before = place.held()
        said = self.run_output(place, Output("record --force -o t.db -- true", "trace"), "", code=0)
        self.assertIn("nothing was recorded", said)
        self.assertEqual(place.held(), before)

    def test_a_program_that_is_not_there_leaves_the_trace(self):
        place = self.place()
        before = place.held()
        self.run_output(place, Output("record --force -o t.db -- ./not_there", "trace"), "", code=(2, 4, 127))
        self.assertEqual(place.held(), before)

    def test_the_program_is_not_replaced_by_its_trace(self):
        place = self.place()
        before = place.held()
        said = self.run_output(place, Output("record --force -o mine -- cat mine", "trace"), "")
        self.assertIn("is a file that this command reads", said)
        self.assertEqual(place.held(), before)

    def test_a_spool_without_its_trace_is_not_replaced(self):
        place = self.place()
        os.rename(place.path("mine"), place.path("u.db.spool"))
        self.assertRefused(place, Output("record -o u.db --keep-empty -- true", "trace"), "",
                           says="u.db.spool' lies where")


class SideFiles(OutputsTest):
    """Files beside a trace that SQLite reads, writes and removes by itself."""

    COMMANDS = ("lint {t}", "replay {t}", "plan {t} -o out", "info {t}", "query {t} --name top_ops", "steps {t}",
                "graph {t}", "pack {t} -o out", "report {t} -o out", "diff {t} {t}", "bisect {t} --budget 5s",
                "prove {t} --budget 5s", "trim {t} --calls 5-12 -o out", "redact {t} -o out", "captures {t}",
                "compare {t}")

    def refuse_all(self, make, says):
        for words in self.COMMANDS:
            with self.subTest(words=words):
                place = self.place()
                make(place)
                before = place.held()
                said = self.run_output(place, Output(words, "file"), "", code=3)
                self.assertIn(says, said)
                self.assertEqual(place.held(), before)

    def test_a_journal_that_names_another_file_removes_it_under_no_command(self):
        def make(place):
            with open(place.path("t.db"), "rb") as file:
                page = struct.unpack(">H", file.read(18)[16:])[0]
            pages = os.path.getsize(place.path("t.db")) // page
            magic, name = bytes.fromhex("d9d505f920a163d7"), place.path("mine").encode()
            head = (magic + struct.pack(">IIIII", 0, 1, pages, 512, page)).ljust(512, b"\0")
            with open(place.path("t.db-journal"), "wb") as file:
                file.write(head + struct.pack(">I", 0x40000000 // page + 1) + name)
                file.write(struct.pack(">II", len(name), sum(name)) + magic)
        self.refuse_all(make, "names another file, which SQLite would remove")

    def test_a_side_file_that_is_another_file_is_not_written(self):
        for name in ("t.db-wal", "t.db-journal", "t.db-shm"):
            self.refuse_all(lambda place, name=name: os.symlink("mine", place.path(name)), "is a link to another file")
            self.refuse_all(lambda place, name=name: os.link(place.path("mine"), place.path(name)), "a hard link")

    def test_a_fifo_beside_the_trace_holds_nothing_up(self):
        self.refuse_all(lambda place: os.mkfifo(place.path("t.db-journal")), "is no plain file")
        place = self.place()
        os.mkfifo(place.path("t.db.spool"))
        self.run_output(place, Output("info {t}", "file"), "", code=0)

    def test_the_journal_of_a_command_that_was_killed_is_rolled_back(self):
        place = self.place()
        holder = sqlite3.connect(place.path("t.db"), isolation_level=None)
        for text in ("PRAGMA cache_size=1", "BEGIN IMMEDIATE", "UPDATE call_row SET thread_id = thread_id + 1000",
                     "INSERT INTO meta VALUES('more than the cache holds', zeroblob(1000000))"):
            holder.execute(text)
        for name in ("t.db", "t.db-journal"):
            for copy in ("u.db", "v.db"):
                shutil.copy(place.path(name), place.path(name.replace("t.db", copy)))
        holder.rollback()
        holder.close()
        self.run_output(place, Output("lint u.db --fail-on never", "file"), "", code=0)
        self.run_output(place, Output("info v.db", "file"), "", code=0)  # opens it for reading alone
        self.assertFalse(os.path.exists(place.path("v.db-journal")))
        self.run_output(place, Output("diff t.db u.db", "file"), "", code=(0, 125))


class Spools(OutputsTest):
    def number(self, source, constant):
        """The number that a header of the product gives a constant."""
        with open(os.path.join(os.path.dirname(__file__), "../..", source)) as file:
            return int(file.read().split(f"{constant} = ")[1].split(";")[0])

    def spool(self, place, entries):
        """A trace whose recorder was killed, and a spool with this after its header."""
        database = sqlite3.connect(place.path("t.db"))
        database.execute("UPDATE meta SET value = 'recording' WHERE key = 'state'")
        database.execute("UPDATE meta SET value = '999999' WHERE key = 'collector_pid'")
        identity = database.execute("SELECT value FROM meta WHERE key = 'collector_spool'").fetchone()[0]
        database.commit()
        database.close()
        version = self.number("recorder/wire/arena.h", "kArenaVersion")
        spool_version = self.number("recorder/collector/spool.h", "kSpoolVersion")
        # SpoolHeader of recorder/collector/spool.h.
        head = struct.pack("<QIIQQqQdIIQiI256s", 0x6C6F6F7073746361, spool_version, version, int(identity[:16], 16),
                           int(identity[16:], 16), 10**12, 0, 1.0, 1, 0, 0, 0, 0, b"")
        with open(place.path("t.db.spool"), "wb") as file:
            file.write(head + entries)

    def calls(self, path):
        with sqlite3.connect(path) as database:
            return database.execute("SELECT count(*) FROM call_row").fetchone()[0]

    def test_a_spool_shorter_than_its_trace_is_kept_aside(self):
        place = self.place()
        body = struct.pack("<IIIIqI4x", 1, 1, 0, 1, 0, 0) + b"python3\0"  # SpoolOpen and a name
        self.spool(place, struct.pack("<IIQQQ", 1, 0, len(body), 1, 1) + body + bytes(100000))
        before, held = self.calls(place.path("t.db")), place.held()
        said = self.run_output(place, Output("info {t}", "file"), "", code=0)
        self.assertIn(f"0 calls are whole there and {before} in the trace; the trace is left as it is", said)
        self.assertEqual(self.calls(place.path("t.db")), before)
        after = place.held()
        self.assertEqual(after.pop(place.path("t.db.spool.kept")), held.pop(place.path("t.db.spool")))
        self.assertEqual(after, held)
        self.assertNotIn("spool", self.run_output(place, Output("info {t}", "file"), "", code=0))

    def test_a_file_in_the_way_of_a_fold_stays(self):
        place = self.place()
        os.rename(place.path("mine"), place.path("t.db.folding"))
        self.spool(place, b"")
        before = place.held()
        self.assertIn("is in the way", self.run_output(place, Output("info {t}", "file"), "", code=0))
        self.assertEqual(place.held(), before)


if __name__ == "__main__":
    main()
