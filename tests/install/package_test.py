#!/usr/bin/env python3
"""The Debian package: what cpack makes of the build, by the eyes of dpkg and of lintian."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("ACLTAPE_BUILD_FOLDER", os.path.join(SOURCE, "build"))


def output(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"$ {' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


class Package(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        if shutil.which("dpkg-shlibdeps") is None:
            raise unittest.SkipTest("Debian packages are made on Debian alone (package dpkg-dev)")
        cls.folder = tempfile.mkdtemp(prefix="acltape_package_")
        output("cpack", "-G", "DEB", "-B", cls.folder, cwd=BUILD)
        found = [name for name in os.listdir(cls.folder) if name.endswith(".deb")]
        assert len(found) == 1, found
        cls.package = os.path.join(cls.folder, found[0])

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def field(self, name):
        return output("dpkg-deb", "-f", self.package, name).strip()

    def test_it_depends_on_what_its_files_need(self):
        needed = set()
        tree = os.path.join(self.folder, "tree")
        output("dpkg-deb", "-x", self.package, tree)
        for folder, _, files in os.walk(tree):
            for name in files:
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    if file.read(4) != b"\x7fELF":
                        continue
                needed |= set(re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-d", path)))
        depends = self.field("Depends")
        for library, package in (("libsqlite3.so.0", "libsqlite3-0"), ("libz.so.1", "zlib1g"),
                                 ("libzstd.so.1", "libzstd1"), ("libc.so.6", "libc6"),
                                 ("libtorch_cpu.so.1.13", "libtorch1.13")):
            if library in needed:
                self.assertRegex(depends, rf"\b{re.escape(package)} \(>= ")
        self.assertIn("libsqlite3.so.0", needed)
        self.assertNotIn("acltape", depends)

    def test_it_has_the_version_of_the_project_and_its_documents(self):
        with open(os.path.join(SOURCE, "CMakeLists.txt")) as file:
            version = re.search(r"project\(acltape VERSION (\S+)", file.read())[1]
        self.assertEqual(self.field("Version"), version + "-1")
        listed = output("dpkg-deb", "-c", self.package)
        for path in ("usr/bin/acltape -> ../lib/acltape/bin/acltape",
                     "usr/share/man/man1/acltape.1.gz", "usr/share/man/man1/acltape-record.1.gz",
                     "usr/share/bash-completion/completions/acltape",
                     "usr/share/zsh/vendor-completions/_acltape",
                     "usr/share/fish/vendor_completions.d/acltape.fish",
                     "usr/share/doc/acltape/copyright", "usr/share/doc/acltape/changelog.gz",
                     "usr/share/doc/acltape/changelog.Debian.gz"):
            self.assertIn("./" + path, listed)

    def test_what_python_compiles_goes_with_the_package(self):
        control = os.path.join(self.folder, "control")
        output("dpkg-deb", "-e", self.package, control)
        for script, call in (("postinst", "py3compile -p acltape"), ("prerm", "py3clean -p acltape")):
            with open(os.path.join(control, script)) as file:
                self.assertIn(call, file.read())
            output("sh", "-n", os.path.join(control, script))

    def test_lintian_finds_no_error(self):
        if shutil.which("lintian") is None:
            self.skipTest("lintian is not installed")
        done = subprocess.run(["lintian", "--allow-root", "--fail-on", "error", self.package],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
