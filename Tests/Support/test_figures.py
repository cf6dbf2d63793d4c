"""Test the evaluation of the benchmarks (exponents, goals, checks of other programs' work, and tables in pages), and the
figures about the sources."""

import contextlib
import io
import json
import os
import pathlib
import tempfile
import unittest
from unittest import mock

import bench_conversion
import bench_data
import bench_export
import bench_files
import bench_fleet
import bench_growth
import bench_items
import bench_large_files
import figures_page
import structure_figures
from figures import Figures


class Growth(unittest.TestCase):
    def test_the_exponent_of_a_power_is_found(self):
        for power in (0.5, 1, 1.12, 2):
            points = [(count, 3e-6 * count**power) for count in (10_000, 100_000, 300_000)]
            self.assertAlmostEqual(bench_growth.exponent(points), power)

    def test_steps_grow_tenfold_and_end_with_the_given_number(self):
        self.assertEqual(bench_growth.steps(100_000), [1_000, 10_000, 100_000])
        self.assertEqual(bench_growth.steps(300_000), [1_000, 10_000, 100_000, 300_000])
        self.assertEqual(bench_growth.steps(1_000), [1_000])

    def test_a_table_marks_a_missed_exponent(self):
        counts = [1_000, 10_000, 100_000]
        found = {"plan": {count: (count**1.2 / 1e5, 30) for count in counts},
                 "verify": {count: (count / 1e5, 30) for count in counts}}
        plan, verify = list(bench_growth.table("items", found, counts))[2:]
        self.assertTrue(plan.endswith("| 1.20 (missed) |"))
        self.assertTrue(verify.endswith("| 1.00 |"))

    def test_a_device_has_the_requested_number_of_items(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "many.json"
            bench_data.write_description(path, 9)
            described = json.loads(path.read_text(encoding="utf-8"))["items"]
        names = {(item["kind"], item["attributes"]["acct"]) for item in described}
        self.assertEqual((len(names), len(described)), (9, 9))
        largest = max(len(json.dumps(item)) for item in described)
        self.assertLess(largest, bench_data.MAX_ITEM_BYTES)


class Goals(unittest.TestCase):
    def run_figures(self, *calls):
        figures, stream = Figures(), io.StringIO()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "figures"
            with mock.patch.dict(os.environ, {"KEYHAUL_FIGURES": str(path)}), contextlib.redirect_stdout(stream):
                for name, *arguments in calls:
                    getattr(figures, name)(*arguments)
                code = figures.finish()
            records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return code, stream.getvalue(), records

    def test_a_goal_is_reached_at_its_limit_and_missed_beyond_it(self):
        self.assertEqual(self.run_figures(("at_most", "a", 1.1, 1.1, "s"), ("at_least", "b", 2, 2, "s"))[0], 0)
        self.assertEqual(self.run_figures(("at_most", "a", 1.11, 1.1, "s"))[0], 1)
        self.assertEqual(self.run_figures(("at_least", "a", 1.99, 2, "s"))[0], 1)

    def test_a_figure_without_a_goal_or_a_measurement_is_printed_and_not_missed(self):
        exit_code, output, records = self.run_figures(("without_goal", "a", 5, "MB"), ("unmeasured", "b", "no peer"))
        self.assertEqual((exit_code, [record["reached"] for record in records]), (0, [None, None]))
        self.assertIn("none b: not measured  (no peer)", output)


class ChecksOfWork(unittest.TestCase):
    """The checks that a measured program did its work."""

    def assert_rejected(self, check):
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(SystemExit) as ended:
            bench_files.timed(["true"], sync_first=False, check=check)
        self.assertIn("error: true ended with 0, but did not do its work", str(ended.exception))

    def test_a_program_that_does_nothing_ends_each_benchmark(self):
        with tempfile.TemporaryDirectory() as folder:
            absent = pathlib.Path(folder) / "absent"
            file = pathlib.Path(folder) / "file"
            file.write_bytes(b"content")
            self.assert_rejected(lambda _: bench_conversion.archive_problem(absent, {"a": "b"}))
            self.assert_rejected(lambda _: bench_export.export_problem(absent))
            self.assert_rejected(lambda printed: bench_files.text_problem(printed, "00"))
            self.assert_rejected(lambda printed: bench_fleet.documents_problem(printed, b"{}"))
            self.assert_rejected(lambda printed: bench_fleet.lines_problem(printed, 1))
            self.assert_rejected(lambda _: bench_items.irestore_document_problem(str(absent), 1))
            self.assert_rejected(lambda _: bench_large_files.file_problem(absent, "00"))
            self.assert_rejected(lambda printed: bench_large_files.digests_problem(printed, [file]))

    def test_a_program_that_does_its_work_is_timed(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "file"
            file.write_bytes(b"content")
            run = bench_files.timed(
                ["openssl", "sha1", str(file)], sync_first=False,
                check=lambda printed: bench_large_files.digests_problem(printed, [file]))
            self.assertGreater(run.seconds, 0)
            for lines in (b'{"format": "a"}\n{"format": "b"}\n', b'{"format": "b"}\n{"format": "a"}\n'):
                self.assertEqual(bench_fleet.lines_problem(lines, 2), "")
                self.assertEqual(bench_fleet.documents_problem(lines, b'{"format": "a"}\n{"format": "b"}\n'), "")
            self.assertNotEqual(bench_fleet.documents_problem(b"{}", b"{}\n"), "")


class PageTables(unittest.TestCase):
    def test_a_table_replaces_only_the_lines_between_its_marks(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text("before\n<!-- a -->\nold\n<!-- end of a -->\nafter\n", encoding="utf-8")
            for _ in range(2):
                figures_page.replace_lines(page, "a", ["| new |"])
                self.assertEqual(
                    page.read_text(encoding="utf-8"), "before\n<!-- a -->\n\n| new |\n\n<!-- end of a -->\nafter\n")
            with self.assertRaises(SystemExit):
                figures_page.replace_lines(page, "b", [])

    def test_a_missed_goal_is_marked_in_the_table(self):
        row = {"name": "a", "figure": "2 s", "goal": "at most 1 s", "beside": "", "reached": False}
        self.assertEqual(list(figures_page.table([row]))[2], "| a | 2 s | at most 1 s | **missed** |  |")


class StructureFigures(unittest.TestCase):
    def test_only_the_path_in_the_package_decides_whether_a_target_counts(self):
        targets = [
            {"name": "Kit", "type": "regular"}, {"name": "Helper", "type": "regular", "path": "Tests/Helper"},
            {"name": "KitTests", "type": "test"}]
        folder = pathlib.Path("/Tests/docs/checkout")
        output = mock.Mock(stdout=json.dumps({"targets": targets}))
        with mock.patch.object(structure_figures.subprocess, "run", return_value=output):
            self.assertEqual(structure_figures.measured_targets(folder), {"Kit": folder / "Sources/Kit"})

    def test_code_of_tutorials_and_a_missing_kit_have_no_public_declarations(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            (path / "Kit.docc").mkdir()
            for name in ("Kit.swift", "Kit.docc/Step.swift"):
                (path / name).write_text("public struct Kit {}\n", encoding="utf-8")
            self.assertEqual(structure_figures.public_declaration_count({"KeyhaulKit": path}), 1)
            self.assertEqual(structure_figures.public_declaration_count({"Kit": path}), 0)

    def test_a_property_after_a_nested_type_belongs_to_the_enclosing_type(self):
        text = """
struct Outer {
  struct Inner {
    let count: Int
  }

  let identity: Identity
  let other: Identity
}
"""
        self.assertEqual(structure_figures.types_about_items(text), 1)
        # The name of the inner type contains "Item", and the outer type stores an identity.
        self.assertEqual(structure_figures.types_about_items(text.replace("Inner", "InnerItem")), 2)


if __name__ == "__main__":
    unittest.main()
