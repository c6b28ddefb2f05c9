#!/usr/bin/env python3
"""An installation can be moved and needs nothing of the build: it records, replays and judges itself.

ACLTAPE_BUILD_FOLDER names the build folder. The tests run in a mount namespace of their own, in which
the build folder and the sources are empty.
"""
import glob
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("ACLTAPE_BUILD_FOLDER", os.path.join(SOURCE, "build"))
TORCH_PYTHON = os.environ.get("ACLTAPE_PYTHON", "/usr/bin/python3")


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)


class InstallTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="acltape_install_")
        first = os.path.join(cls.folder, "first")
        done = run("cmake", "--install", BUILD, "--prefix", first)
        if done.returncode != 0 or done.stderr:
            raise AssertionError(f"cmake --install failed; build all of {BUILD} before.\n{done.stderr}")
        cls.prefix = os.path.join(cls.folder, "moved", "elsewhere")
        os.makedirs(os.path.dirname(cls.prefix))
        os.rename(first, cls.prefix)
        cls.acltape = os.path.join(cls.prefix, "bin", "acltape")
        cls.environment = {"PATH": f"{cls.prefix}/bin:/usr/bin:/bin", "HOME": cls.folder,
                           "LANG": "C.UTF-8"}

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def check(self, done, code=0):
        self.assertEqual(done.returncode, code, f"\n$ {' '.join(done.args)}\n{done.stdout}{done.stderr}")
        return done.stdout

    def share(self, *below):
        found = glob.glob(os.path.join(self.prefix, "share", *below))
        self.assertTrue(found, below)
        return found


class Installed(InstallTest):
    def alone(self, script):
        """Runs a shell script where the build folder and the sources are empty folders."""
        hide = " && ".join(f"mount -t tmpfs none '{folder}'" for folder in (BUILD, SOURCE)
                           if os.path.isdir(folder))
        probe = run("unshare", "--mount", "--map-root-user", "sh", "-c", hide)
        if probe.returncode != 0:
            self.skipTest("this machine allows no mount namespace of one's own: " + probe.stderr)
        done = run("unshare", "--mount", "--map-root-user", "sh", "-ec", f"{hide}\n{script}",
                   cwd=self.folder, env=self.environment)
        return self.check(done)

    def test_it_records_replays_and_judges_itself_without_the_build(self):
        shutil.copy(os.path.join(SOURCE, "bench", "workloads", "mlp_train.py"), self.folder)
        out = self.alone(f"""
test ! -e '{SOURCE}/CMakeLists.txt' && test ! -e '{BUILD}/bin'
acltape record -o t.db --payload all -- '{TORCH_PYTHON}' mlp_train.py --steps 4
acltape replay t.db --mode captured
acltape doctor
""")
        self.assertRegex(out, r"outputs equal +[1-9]")
        self.assertRegex(out, r"outputs different +0")
        self.assertIn(os.path.join(self.prefix, "lib"), out)  # folder of the kit and the soft device
        self.assertNotIn(BUILD, out)

    def test_an_acl_program_is_built_against_it_and_replays(self):
        shutil.copy(os.path.join(SOURCE, "tests", "programs", "multi_stream.cpp"), self.folder)
        shutil.copy(os.path.join(SOURCE, "tests", "programs", "sample.h"), self.folder)
        sdk, = glob.glob(os.path.join(self.prefix, "lib*", "**", "acltape", "sdk"), recursive=True)
        out = self.alone(f"""
g++ multi_stream.cpp -I'{sdk}/include' -L'{sdk}/lib64' -lascendcl -lopapi -lnnopbase -pthread -o program
acltape record --soft --level acl -o acl.db --payload all -- ./program
acltape replay acl.db
""")
        self.assertRegex(out, r"outputs different +0")

    def test_no_file_names_the_machine_that_built_it(self):
        checked = 0
        for folder, _, files in os.walk(self.prefix):
            for name in files:
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    content = file.read()
                for place in (SOURCE.encode() + b"/", BUILD.encode()):
                    found = content.find(place)
                    self.assertEqual(found, -1, f"{path} names a path of this machine: {content[found:found + 200]}")
                if content[:4] != b"\x7fELF":
                    continue
                checked += 1
                dynamic = run("readelf", "-d", path).stdout
                for run_path in re.findall(r"R(?:UN)?PATH\).*\[(.*)\]", dynamic):
                    for entry in run_path.split(":"):
                        self.assertTrue(entry.startswith("$ORIGIN"), (path, entry))
        self.assertGreater(checked, 15)

    def test_every_link_leads_inside(self):
        for folder, folders, files in os.walk(self.prefix):
            for name in folders + files:
                path = os.path.join(folder, name)
                if os.path.islink(path):
                    self.assertFalse(os.path.isabs(os.readlink(path)), path)
                    self.assertTrue(os.path.exists(path), path)

    def test_what_has_two_names_lies_in_it_once(self):
        kits, = glob.glob(os.path.join(self.prefix, "lib*", "**", "acltape", "sdk", "lib64", "kits"), recursive=True)
        self.assertEqual([name for name in os.listdir(kits) if not os.path.islink(os.path.join(kits, name))],
                         ["default"])
        headers, = glob.glob(os.path.join(self.prefix, "lib*", "**", "aclnnop", "level2"), recursive=True)
        self.assertTrue(os.path.islink(headers))

    def test_every_file_that_a_document_refers_to_is_there(self):
        seen = 0
        documents, = self.share("doc", "acltape")
        for folder, _, names in os.walk(documents):
            for name in (name for name in names if name.endswith(".md")):
                with open(os.path.join(folder, name)) as file:
                    for link in re.findall(r"\]\(([\w./]+)[)#]", file.read()):
                        seen += 1
                        self.assertTrue(os.path.exists(os.path.join(folder, link)), (name, link))
        self.assertGreater(seen, 50)

    def test_the_sources_of_kits_are_those_that_the_stamp_stands_for(self):
        source, = glob.glob(os.path.join(self.prefix, "lib*", "**", "acltape", "source"),
                            recursive=True)
        files = [os.path.relpath(os.path.join(folder, name), source)
                 for folder, _, names in os.walk(source) for name in names]
        self.assertIn("kit/project/CMakeLists.txt", files)
        self.assertIn("recorder/torch/leaf.cpp", files)
        stamped = os.path.join(self.folder, "stamp.h")
        self.check(run(sys.executable, "-B", os.path.join(SOURCE, "kit", "stamp.py"), stamped,
                       *[os.path.join(source, name) for name in files]))
        with open(stamped) as one, open(os.path.join(BUILD, "generated", "kit", "stamp.h")) as other:
            self.assertEqual(one.read(), other.read())


class Completion(InstallTest):
    """In a real bash, and in zsh and fish where they are installed."""

    def bash(self, line, folder=None):
        """Completes the line by Tab."""
        words = line.split(" ")
        script = (f"source '{self.share('bash-completion', 'completions', 'acltape')[0]}'\n"
                  f"COMP_WORDS=({' '.join(repr(word) for word in words)})\n"
                  f"COMP_CWORD={len(words) - 1}\n_acltape\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n")
        done = run("bash", "--norc", "-c", script, cwd=folder or self.folder, env=self.environment)
        return set(filter(None, self.check(done).splitlines()))

    def test_commands(self):
        self.assertEqual(self.bash("acltape re"), {"record", "redact", "replay", "report"})
        self.assertLessEqual({"record", "--version", "--help", "man"}, self.bash("acltape "))
        self.assertNotIn("serve-calls", self.bash("acltape "))

    def test_options_of_a_command_are_those_of_its_help(self):
        for command in self.bash("acltape ") - {"--version", "--help", "-h"}:
            help_text = self.check(run(self.acltape, command, "--help"))
            options = re.findall(r"^  (-[\w,-]+)", help_text.split("Options:")[1].split("Examples:")[0],
                                 re.M)
            names = {name for option in options for name in option.split(",")}
            self.assertEqual(self.bash(f"acltape {command} -"), names, command)

    def test_words_that_an_option_takes(self):
        self.assertEqual(self.bash("acltape record --payload "), {"all", "digest", "inputs", "none"})
        self.assertEqual(self.bash("acltape export t.db --to p"), {"parquet", "perfetto"})
        self.assertEqual(self.bash("acltape replay --repetitions "), set())
        self.assertEqual(self.bash("acltape export t.db --to = p"), {"parquet", "perfetto"})  # --to=p
        self.assertEqual(self.bash("acltape record --payload ="), {"all", "digest", "inputs", "none"})
        self.assertLessEqual({"add", "list", "remove"}, self.bash("acltape torch "))

    def test_names_of_files_with_their_spaces(self):
        folder = os.path.join(self.folder, "files")
        os.makedirs(folder, exist_ok=True)
        for name in ("one trace.db", "other.db", "plan.json"):
            open(os.path.join(folder, name), "w").close()
        self.assertEqual(self.bash("acltape replay o", folder), {"one trace.db", "other.db"})
        self.assertEqual(self.bash("acltape replay other.db --plan p", folder), {"plan.json"})
        self.assertIn("plan.json", self.bash("acltape record -- ls p", folder))
        self.assertIn("bash", self.bash("acltape record -- bas", folder))

    def test_it_is_what_the_command_prints(self):
        for shell, path in (("bash", self.share("bash-completion", "completions", "acltape")[0]),
                            ("zsh", self.share("zsh", "*", "_acltape")[0]),
                            ("fish", self.share("fish", "vendor_completions.d", "acltape.fish")[0])):
            with open(path) as file:
                self.assertEqual(file.read(), self.check(run(self.acltape, "completion", shell)))
            if shutil.which(shell):
                self.check(run(shell, "-n", path))
        self.assertIn("powershell", run(self.acltape, "completion", "powershell").stderr)

    ZSH = r"""
zmodload zsh/zpty
zpty shell 'zsh -f -i'
zpty -w shell "fpath=('$1' \$fpath); autoload -Uz compinit; compinit -u -D"
zpty -w shell "show() { print -rn -- \"\$BUFFER\" > '$2'; BUFFER=exit; zle accept-line }"
zpty -w shell "zle -N show; bindkey '^X' show; print rea''dy"
zpty -r -m shell answer '*ready*'
zpty -w -n shell "$3"$'\t\C-x'
while zpty -r shell answer; do :; done
"""

    def zsh(self, line):
        """The line after Tab, in an interactive zsh on a terminal of its own."""
        answer = os.path.join(self.folder, "zsh_answer")
        folder = os.path.dirname(self.share("zsh", "*", "_acltape")[0])
        done = run("zsh", "-f", "-c", self.ZSH, "zsh", folder, answer, line, cwd=self.folder,
                   env={**self.environment, "TERM": "xterm"}, timeout=60)
        self.assertTrue(os.path.exists(answer), done.stdout + done.stderr)
        with open(answer) as file:
            text = file.read()
        os.remove(answer)
        return text

    def test_zsh_completes(self):
        if shutil.which("zsh") is None:
            self.skipTest("zsh is not installed")
        self.assertEqual(self.zsh("acltape rec"), "acltape record ")
        self.assertEqual(self.zsh("acltape record --pay"), "acltape record --payload ")
        self.assertEqual(self.zsh("acltape record --payload dig"), "acltape record --payload digest ")
        self.assertEqual(self.zsh("acltape export t.db --to p"), "acltape export t.db --to perfetto ")
        open(os.path.join(self.folder, "one trace.db"), "w").close()
        self.assertEqual(self.zsh("acltape replay one"), "acltape replay one\\ trace.db ")

    def test_fish_completes(self):
        if shutil.which("fish") is None:
            self.skipTest("fish is not installed")
        script = self.share("fish", "vendor_completions.d", "acltape.fish")[0]
        ask = lambda line: {row.split("\t")[0] for row in self.check(run(
            "fish", "--no-config", "-c", f"source '{script}'; complete -C '{line}'",
            cwd=self.folder, env=self.environment)).splitlines()}
        self.assertEqual(ask("acltape re"), {"record", "redact", "replay", "report"})
        self.assertEqual(ask("acltape record --payload "), {"all", "digest", "inputs", "none"})
        self.assertIn("--plan", ask("acltape replay --pl"))


class ManualPages(InstallTest):
    def pages(self):
        return sorted(self.share("man", "man1", "*"))

    def test_each_command_has_one_with_its_options_and_man_finds_nothing_wrong(self):
        names = {os.path.basename(page).split(".")[0] for page in self.pages()}
        commands = re.findall(r"^  (\w+) ", self.check(run(self.acltape, "--help"))
                              .split("Subcommands:")[1].split("\n\n")[0], re.M)
        self.assertEqual(names, {"acltape"} | {f"acltape-{command}" for command in commands})
        for page in self.pages():
            if shutil.which("man"):
                done = run("man", "--warnings", "-E", "UTF-8", "-l", page,
                           env={**self.environment, "MANROFFSEQ": "", "MANWIDTH": "80"})
                self.check(done)
                self.assertEqual(done.stderr, "", page)
            if shutil.which("mandoc"):
                self.check(run("mandoc", "-Tlint", "-Wwarning", page))

    def test_a_page_says_what_help_says(self):
        page, = [page for page in self.pages() if "acltape-replay." in page]
        opener = gzip.open if page.endswith(".gz") else open
        with opener(page, "rt") as file:
            text = file.read().replace("\\-", "-").replace("\\fB", "").replace("\\fR", "")
        help_text = self.check(run(self.acltape, "replay", "--help"))
        for option in re.findall(r"^  (-[\w,-]+)", help_text.split("Options:")[1]
                                 .split("Examples:")[0], re.M):
            self.assertIn(option.replace(",", ", "), text)
        for line in help_text.split("Examples:\n")[1].splitlines():
            self.assertIn(line.strip().replace("'", "\\(aq").replace("~", "\\(ti"), text)

    def test_text_that_means_something_to_troff_stays_text(self):
        page = self.check(run(self.acltape, "man", "query"))
        self.assertIn("\\(aqSELECT op, count(*) FROM call GROUP BY op\\(aq", page)
        self.assertEqual(run(self.acltape, "man", "nothing").returncode, 2)


class Version(InstallTest):
    def test_it_names_the_commit_and_says_when_the_tree_was_not_clean(self):
        said = self.check(run(self.acltape, "--version")).strip()
        self.assertRegex(said, r"^acltape \d+\.\d+\.\d+( \(commit [0-9a-f]{12}(, from an unclean tree)?\))?$")

    def test_a_tree_is_unclean_once_a_file_differs(self):
        tree, header = os.path.join(self.folder, "tree"), os.path.join(self.folder, "commit.h")
        git = lambda *words: self.check(run("git", "-C", tree, "-c", "user.name=t",
                                            "-c", "user.email=t@localhost", *words)).strip()
        os.makedirs(tree)

        def define():
            self.check(run("cmake", f"-DSOURCE={tree}", f"-DOUTPUT={header}", "-P",
                           os.path.join(SOURCE, "cmake", "commit.cmake")))
            with open(header) as file:
                return dict(re.findall(r"#define ACLTAPE_(\w+) (\S+)", file.read()))

        self.assertEqual(define()["COMMIT"], '""')  # no repository
        git("init", "-q")
        git("commit", "-q", "--allow-empty", "-m", "first")
        commit = git("rev-parse", "--short=12", "HEAD")
        self.assertEqual(define(), {"COMMIT": f'"{commit}"', "UNCLEAN": "0",
                                    "COMMIT_DATE": f'"{git("log", "-1", "--format=%cs")}"'})
        open(os.path.join(tree, "new"), "w").close()
        self.assertEqual(define()["UNCLEAN"], "1")


if __name__ == "__main__":
    unittest.main()
