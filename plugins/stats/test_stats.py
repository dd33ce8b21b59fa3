"""Native tests: python3 -m unittest"""

import json
import math
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "../../sdk/python")]

import plugin  # noqa: E402
import summary  # noqa: E402
import table as tables  # noqa: E402
from toolgate import InvalidArguments, testing  # noqa: E402

SALES = 'city;year;sales\nBern;2024;1.200,5\nBern;2025;3,5\nBasel;2025;\n"Genf; CH";2025;x\n'
COMMA = {"table": SALES, "decimal": ","}


class Reading(unittest.TestCase):
    def test_delimiters_are_found(self):
        for text, columns in [
            ("a,b\n1,2", ["a", "b"]),
            ("a;b,c\n1;2", ["a", "b,c"]),
            ("a\tb\tc\n", ["a", "b", "c"]),
            ("a|b\n", ["a", "b"]),
            ("alone\n1", ["alone"]),
            ("\ufeffa,b\n", ["a", "b"]),
            ("a,,a\n", ["a", "column 2", "a (2)"]),
            ('"a, b", c\r\n', ["a, b", "c"]),
        ]:
            with self.subTest(text=text):
                self.assertEqual(tables.read(text).columns, columns)

    def test_a_quoted_cell_may_have_lines_and_quotes(self):
        self.assertEqual(tables.read('a,b\n"x\ny","say ""hi"""\n').rows, [["x\ny", 'say "hi"']])

    def test_rows_of_another_length_are_counted(self):
        read = tables.read("a,b\n1\n1,2,3\n\n4,5\n")
        self.assertEqual((read.rows, read.ragged), ([["1", ""], ["1", "2"], ["4", "5"]], 2))

    def test_without_a_header_columns_have_numbers(self):
        read = tables.read("1,2\n3,4", has_header=False)
        self.assertEqual((read.columns, len(read.rows)), (["1", "2"], 2))

    def test_numbers(self):
        for decimal, cell, number in [
            (".", "1", 1),
            (".", " -1.5e3 ", -1500),
            (".", "1,234,567.5", 1234567.5),
            (".", "1,5", None),
            (".", "12 %", 12),
            (".", "\u22127", -7),
            (".", ".5", 0.5),
            (".", "1e999", None),
            (".", "nan", None),
            (".", "0x10", None),
            (".", "1_000", None),
            (".", "\u0663", None),
            (",", "1.234,5", 1234.5),
            (",", "1,5", 1.5),
        ]:
            with self.subTest(cell=cell):
                self.assertEqual(tables.Table([], decimal=decimal).number(cell), number)

    def test_types(self):
        for cells, kind in [
            (["1", "2", ""], "integer"),
            (["1", "2.5"], "number"),
            (["1", "x"], "text"),
            (["2026-01-02", "2026-01-02T03:04:05"], "date"),
            (["yes", "No", "TRUE"], "boolean"),
            (["", "n/a", "NULL"], "empty"),
        ]:
            with self.subTest(cells=cells):
                self.assertEqual(tables.Table([]).kind(cells), kind)

    def test_mistakes_say_what_to_do(self):
        for text, part in [("\n\n", "is empty"), ('a\n"x', "line 2"), ("a\n" + "x" * 140_000, "line 2")]:
            with self.subTest(part=part), self.assertRaisesRegex(InvalidArguments, part):
                tables.read(text)
        with self.assertRaisesRegex(InvalidArguments, "no column `c`; there are: a, b"):
            tables.read("a,b\n").index("c")


class Numbers(unittest.TestCase):
    def test_quantiles_are_those_of_everybody_else(self):
        ordered = [1.0, 2.0, 4.0, 8.0]
        for q, value in [(0, 1), (0.25, 1.75), (0.5, 3), (0.9, 6.8), (1, 8)]:
            self.assertAlmostEqual(summary.quantile(ordered, q), value)

    def test_sums_are_exact(self):
        self.assertEqual(summary.summarize([1e16, 1, -1e16], 0, 0, []).sum, 1.0)

    def test_one_number_has_no_deviation(self):
        of = summary.summarize([5.0], 1, 2, [0.5])
        self.assertEqual((of.count, of.missing, of.not_numbers, of.stdev, of.quantiles), (1, 1, 2, None, {"0.5": 5.0}))

    def test_every_number_is_in_one_bin(self):
        numbers = [0.1 * n for n in range(101)]
        for bins in (1, 3, 7, 10, 100):
            self.assertEqual(sum(one.count for one in summary.histogram(numbers, bins)), 101)
        self.assertEqual(summary.histogram([2.0, 2.0], 9), [summary.Bin(2.0, 2.0, 2)])

    def test_what_does_not_vary_has_no_relation(self):
        self.assertIsNone(summary.correlation([(1, 1), (1, 2)]))
        self.assertIsNone(summary.slope([(1, 1), (1, 2)]))
        self.assertIsNone(summary.correlation([(1, 1)]))


class Tools(unittest.TestCase):
    def result(self, tool, **arguments):
        return testing.run(tool, arguments).result

    def test_the_declarations_are_legal(self):
        testing.check()

    def test_columns(self):
        columns = {one["name"]: one for one in self.result("stats_columns", **COMMA)["columns"]}
        self.assertEqual([columns[name]["type"] for name in ("city", "year", "sales")], ["text", "integer", "text"])
        self.assertEqual((columns["sales"]["missing"], columns["city"]["distinct"]), (1, 3))

    def test_describe_takes_the_columns_with_numbers(self):
        described = self.result("stats_describe", **COMMA, quantiles=[0, 1])["columns"]
        self.assertEqual(list(described), ["year", "sales"])
        self.assertEqual(described["sales"]["quantiles"], {"0": 3.5, "1": 1200.5})
        self.assertEqual((described["sales"]["missing"], described["sales"]["not_numbers"]), (1, 1))

    def test_groups_the_largest_first(self):
        given = self.result("stats_group", **COMMA, by=["city"], value="sales", aggregates=["count", "sum", "median"], limit=2)
        self.assertEqual(given["groups"][0], {"key": ["Bern"], "values": {"count": 2, "sum": 1204.0, "median": 602.0}})
        self.assertEqual(given["groups"][1]["values"], {"count": 1, "sum": None, "median": None})
        self.assertEqual(given["left_out"], 1)

    def test_a_histogram_has_a_chart(self):
        given = self.result("stats_histogram", table="n\n1\n1\n2\n", column="N", bins=2)
        self.assertEqual([one["count"] for one in given["bins"]], [2, 1])
        self.assertEqual(given["chart"].splitlines()[0], "           1 | " + "#" * 40 + " 2")

    def test_a_relation(self):
        given = self.result("stats_relation", table="x,y\n1,3\n2,5\n3,7\n,9\n", x="x", y="y")
        self.assertEqual(given["pairs"], 3)
        for name, value in [("correlation", 1), ("slope", 2), ("intercept", 1)]:
            self.assertTrue(math.isclose(given[name], value), name)

    def test_large_tables_report_and_stop(self):
        rows = tables.STEP * 3 + 1
        large = "n\n" + "\n".join(map(str, range(rows)))
        run = testing.run("stats_columns", {"table": large})
        self.assertEqual((run.result["rows"], run.result["complete"], len(run.updates)), (rows, True, 3))
        run = testing.run("stats_columns", {"table": large}, stop_after=2)
        self.assertEqual((run.result["rows"], run.result["complete"]), (tables.STEP * 2, False))
        self.assertEqual(run.logs, [("warn", f"asked to stop after {tables.STEP * 2} rows")])

    def test_senseless_arguments_are_reported(self):
        for tool, arguments, part in [
            ("stats_describe", {"table": "a\nx\n"}, "no column has numbers"),
            ("stats_group", {"table": "a\n1\n", "by": ["a"], "aggregates": ["sum"]}, "`value` is missing"),
            ("stats_group", {"table": "a\n1\n", "by": []}, "/by: must have at least 1 item"),
            ("stats_histogram", {"table": "a\nx\n", "column": "a"}, "has no numbers"),
            ("stats_columns", {"table": "," * 200 + "\n"}, "201 columns"),
            ("stats_columns", {"table": ""}, "/table: must have at least 1 character"),
        ]:
            with self.subTest(tool=tool, part=part):
                failure = testing.run(tool, arguments).failure
                self.assertIsInstance(failure, InvalidArguments)
                self.assertIn(part, str(failure))

    def test_the_examples_are_right(self):
        for example in json.loads((HERE / "examples.json").read_text()):
            run = testing.run(example["tool"], example["arguments"])
            with self.subTest(example=example.get("name")):
                if "failure" in example:
                    self.assertIsInstance(run.failure, InvalidArguments)
                elif "result" in example:
                    self.assertEqual(run.result, example["result"])
                else:
                    self.assertIsNone(run.failure)


if __name__ == "__main__":
    unittest.main()
