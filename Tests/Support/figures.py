"""Print the figures of a benchmark with their goals, and determine the exit code."""

import json
import os
import pathlib


def formatted(value):
    """Return a number with a suitable precision."""
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:,.0f}"


class Figures:
    """The figures of one run. Each is also written as a line of JSON to the file in KEYHAUL_FIGURES."""

    def __init__(self):
        self.reached = self.missed = 0

    @staticmethod
    def note(line):
        """Print a line without a figure."""
        print(f"     {line}", flush=True)

    def at_most(self, name, value, limit, unit, comment=""):
        """Print a figure that must not exceed a limit."""
        self._figure(name, value, unit, "at most", limit, value <= limit, comment)

    def at_least(self, name, value, limit, unit, comment=""):
        """Print a figure that must reach a limit."""
        self._figure(name, value, unit, "at least", limit, value >= limit, comment)

    def without_goal(self, name, value, unit, comment=""):
        """Print a figure without a limit."""
        self._figure(name, value, unit, "", None, True, comment)

    def unmeasured(self, name, reason):
        """Print that a figure was not measured, for example because a program is missing. No goal counts as missed."""
        print(f"none {name}: not measured  ({reason})", flush=True)
        self._record({"name": name, "figure": "not measured", "goal": "", "beside": reason, "reached": None})

    def finish(self):
        """Print the counts, and return the exit code: 1 if a goal was missed."""
        print(f"{self.reached} passed, {self.missed} failed", flush=True)
        return 1 if self.missed else 0

    def _figure(self, name, value, unit, comparison, limit, is_reached, comment):
        self.reached += is_reached
        self.missed += not is_reached
        figure, goal = (
            f"{formatted(number)}{'' if unit == '×' else ' '}{unit}".rstrip() for number in (value, limit or 0)
        )
        goal = f"{comparison} {goal}" if comparison else ""
        line = f"{'ok  ' if is_reached else 'MISS'} {name}: {figure}"
        print(line + (f"  {goal}" if goal else "") + (f"  ({comment})" if comment else ""), flush=True)
        self._record({
            "name": name, "figure": figure, "goal": goal, "beside": comment,
            "reached": bool(is_reached) if comparison else None})

    @staticmethod
    def _record(figure):
        if path := os.environ.get("KEYHAUL_FIGURES"):
            with pathlib.Path(path).open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(figure) + "\n")
