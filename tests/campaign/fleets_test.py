#!/usr/bin/env python3
"""The rules of the campaign over fleets: one number gives one variant, and answers that are wrong are found."""
import os
import sys
import tempfile
import unittest
from unittest import mock

import fleets

from acltape.fleet import folder

SEEDS = range(1, 400)


def seed_of(kind, expected):
    """The first variant of a kind with which this must happen."""
    for seed in SEEDS:
        if fleets.kind_of(seed) == kind:
            one = fleets.Variant(Rules.fleets, seed)
            one.damage()
            if one.expected == expected:
                return seed
    raise AssertionError(f"none of {SEEDS} is a variant of {kind} that is {expected}")


class Rules(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.room = tempfile.TemporaryDirectory(prefix="acltape_fleets_rules_")
        cls.addClassCleanup(cls.room.cleanup)
        tempfile.tempdir = os.path.join(cls.room.name, fleets.TEMPORARY)
        os.mkdir(tempfile.tempdir)
        cls.fleets = fleets.Fleets(cls.room.name)

    def wrong(self, kind, expected):
        return fleets.Variant(self.fleets, seed_of(kind, expected)).run()

    def test_each_kind_is_among_two_hundred_variants(self):
        self.assertEqual({fleets.kind_of(seed) for seed in range(1, 201)}, set(fleets.fleet_damage.KINDS))

    def test_one_number_gives_one_variant(self):
        contents = []
        for _ in range(2):
            one = fleets.Variant(self.fleets, 10)
            one.damage()
            contents.append([open_bytes(path) for path in sorted(fleets.inventory(one.folder)) if os.path.isfile(path)])
        self.assertEqual(*contents)

    def test_a_file_that_is_not_judged_is_found(self):
        self.assertEqual(self.wrong("manifest: checksum another", "out"), "")
        with mock.patch.object(folder, "_judge_contents", lambda *_: None):
            self.assertIn("expected out", self.wrong("manifest: checksum another", "out"))

    def test_a_part_that_is_not_named_is_found(self):
        self.assertEqual(self.wrong("manifest: no JSON", "out"), "")
        with mock.patch.object(folder.LeftOut, "__new__", lambda *_: ("a part", "it cannot be read")):
            self.assertIn("not named", self.wrong("manifest: no JSON", "out"))

    def test_an_error_of_the_inside_and_a_changed_file_are_found(self):
        judge = folder.Folder.judge

        def touch(self, tables):
            os.utime(os.path.join(self.path, "acltape_fleet.json"))
            judge(self, tables)
        self.assertEqual(self.wrong("schema: another order", "whole"), "")
        with mock.patch.object(folder.Folder, "judge", touch):
            self.assertIn("files were changed", self.wrong("schema: another order", "whole"))
        with mock.patch.object(folder.Folder, "judge", lambda *_: [][1]):
            self.assertIn("IndexError", self.wrong("schema: another order", "whole"))
        with mock.patch.object(folder.Folder, "judge", lambda *_: os.kill(os.getpid(), 11)):
            self.assertIn("signal 11", self.wrong("schema: another order", "whole"))

    def test_control_characters_are_found(self):
        with mock.patch.object(folder, "shown", str):
            self.assertIn("control characters", self.wrong("manifest: lacks of all kinds", "whole"))


def open_bytes(path):
    with open(path, "rb") as file:
        return file.read()


if __name__ == "__main__":
    sys.exit(unittest.main())
