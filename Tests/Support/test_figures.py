"""Checks what the benchmarks are told by: exponents, verdicts, and the place of a table in a page."""

import contextlib
import io
import json
import os
import pathlib
import tempfile
import unittest
from unittest import mock

import bench_conversion
import bench_export
import bench_files
import bench_fleet
import bench_growth
import bench_items
import bench_large_files
import bench_shop
import figures_page
from figures import Figures


class Growth(unittest.TestCase):
    def test_an_exponent_is_that_of_the_power(self):
        for power in (0.5, 1, 1.12, 2):
            points = [(count, 3e-6 * count**power) for count in (10_000, 100_000, 300_000)]
            self.assertAlmostEqual(bench_growth.exponent(points), power)

    def test_steps_are_tenfold_and_end_where_it_was_said(self):
        self.assertEqual(bench_growth.steps(100_000), [1_000, 10_000, 100_000])
        self.assertEqual(bench_growth.steps(300_000), [1_000, 10_000, 100_000, 300_000])
        self.assertEqual(bench_growth.steps(1_000), [1_000])

    def test_a_table_names_a_missed_exponent_beside_its_row(self):
        counts = [1_000, 10_000, 100_000]
        found = {"plan": {count: (count**1.2 / 1e5, 30) for count in counts},
                 "verify": {count: (count / 1e5, 30) for count in counts}}
        plan, verify = list(bench_growth.table("items", found, counts))[2:]
        self.assertTrue(plan.endswith("| 1.20 (missed) |"))
        self.assertTrue(verify.endswith("| 1.00 |"))

    def test_a_device_has_as_many_items_as_were_asked_for(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder) / "many.json"
            bench_shop.describe(place, 9)
            described = json.loads(place.read_text(encoding="utf-8"))["items"]
        names = {(item["kind"], item["attributes"]["acct"]) for item in described}
        self.assertEqual((len(names), len(described)), (9, 9))
        largest = max(len(json.dumps(item)) for item in described)
        self.assertLess(largest, bench_shop.LARGEST_ITEM)


class Verdicts(unittest.TestCase):
    def said(self, *calls):
        figures, stream = Figures(), io.StringIO()
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder) / "figures"
            with mock.patch.dict(os.environ, {"KEYHAUL_FIGURES": str(place)}), contextlib.redirect_stdout(stream):
                for name, *arguments in calls:
                    getattr(figures, name)(*arguments)
                code = figures.conclude()
            kept = [json.loads(line) for line in place.read_text(encoding="utf-8").splitlines()]
        return code, stream.getvalue(), kept

    def test_a_goal_is_reached_at_its_limit_and_missed_beyond_it(self):
        self.assertEqual(self.said(("at_most", "a", 1.1, 1.1, "s"), ("at_least", "b", 2, 2, "s"))[0], 0)
        self.assertEqual(self.said(("at_most", "a", 1.11, 1.1, "s"))[0], 1)
        self.assertEqual(self.said(("at_least", "a", 1.99, 2, "s"))[0], 1)

    def test_what_has_no_goal_or_no_peer_is_said_and_not_missed(self):
        code, said, kept = self.said(("without_goal", "a", 5, "MB"), ("unmeasured", "b", "no peer"))
        self.assertEqual((code, [each["reached"] for each in kept]), (0, [None, None]))
        self.assertIn("none b: not measured  (no peer)", said)


class Peers(unittest.TestCase):
    """A program that does nothing and ends with 0 has no time that counts."""

    def refused(self, check):
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit) as ended:
            bench_files.timed(["true"], settle=False, check=check)
        self.assertIn("error: true ended with 0, and its work is not done", str(ended.exception))

    def test_a_peer_that_does_nothing_ends_every_benchmark_that_has_one(self):
        with tempfile.TemporaryDirectory() as folder:
            absent = pathlib.Path(folder) / "absent"
            file = pathlib.Path(folder) / "file"
            file.write_bytes(b"content")
            self.refused(lambda _: bench_conversion.differing(absent, {"a": "b"}))
            self.refused(lambda _: bench_export.missing_items(absent))
            self.refused(lambda printed: bench_files.other_text(printed, "00"))
            self.refused(lambda printed: bench_fleet.wrong_documents(printed, b"{}"))
            self.refused(lambda printed: bench_fleet.wrong_lines(printed, 1))
            self.refused(lambda _: bench_items.unread(str(absent), 1))
            self.refused(lambda _: bench_large_files.wrong_file(absent, "00"))
            self.refused(lambda printed: bench_large_files.wrong_digests(printed, [file]))

    def test_a_peer_that_does_its_work_has_a_time(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "file"
            file.write_bytes(b"content")
            run = bench_files.timed(
                ["openssl", "sha1", str(file)], settle=False,
                check=lambda printed: bench_large_files.wrong_digests(printed, [file]))
            self.assertGreater(run.seconds, 0)
            for line in (b'{"format": "a"}\n{"format": "b"}\n', b'{"format": "b"}\n{"format": "a"}\n'):
                self.assertEqual(bench_fleet.wrong_lines(line, 2), "")
                self.assertEqual(bench_fleet.wrong_documents(line, b'{"format": "a"}\n{"format": "b"}\n'), "")
            self.assertNotEqual(bench_fleet.wrong_documents(b"{}", b"{}\n"), "")


class Page(unittest.TestCase):
    def test_a_table_takes_the_place_between_its_marks_and_nothing_else(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text("before\n<!-- a -->\nold\n<!-- end of a -->\nafter\n", encoding="utf-8")
            for _ in range(2):
                figures_page.put(page, "a", ["| new |"])
                self.assertEqual(
                    page.read_text(encoding="utf-8"), "before\n<!-- a -->\n\n| new |\n\n<!-- end of a -->\nafter\n")
            with self.assertRaises(SystemExit):
                figures_page.put(page, "b", [])

    def test_a_missed_goal_is_named_as_missed(self):
        row = {"name": "a", "figure": "2 s", "goal": "at most 1 s", "beside": "", "reached": False}
        self.assertEqual(list(figures_page.table([row]))[2], "| a | 2 s | at most 1 s | **missed** |  |")


if __name__ == "__main__":
    unittest.main()
