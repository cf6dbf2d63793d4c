"""Prints a benchmark's figures, each with its goal and a comparison, and determines the exit code."""

import json
import os
import pathlib


def text(value):
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:,.0f}"


class Figures:
    """The figures of one run. The file that KEYHAUL_FIGURES names gets each of them as a line of JSON."""

    def __init__(self):
        self.reached = self.missed = 0

    @staticmethod
    def note(said):
        print(f"     {said}", flush=True)

    def at_most(self, name, value, limit, unit, beside=""):
        self._figure(name, value, unit, "at most", limit, value <= limit, beside)

    def at_least(self, name, value, limit, unit, beside=""):
        self._figure(name, value, unit, "at least", limit, value >= limit, beside)

    def without_goal(self, name, value, unit, beside=""):
        self._figure(name, value, unit, "", None, True, beside)

    def unmeasured(self, name, why):
        """A row whose peer is not there says so; it is neither reached nor missed."""
        print(f"none {name}: not measured  ({why})", flush=True)
        self._keep({"name": name, "figure": "not measured", "goal": "", "beside": why, "reached": None})

    def conclude(self):
        print(f"{self.reached} passed, {self.missed} failed", flush=True)
        return 1 if self.missed else 0

    def _figure(self, name, value, unit, word, limit, is_reached, beside):
        self.reached += is_reached
        self.missed += not is_reached
        figure, goal = (f"{text(number)}{'' if unit == '×' else ' '}{unit}".rstrip() for number in (value, limit or 0))
        goal = f"{word} {goal}" if word else ""
        said = f"{'ok  ' if is_reached else 'MISS'} {name}: {figure}"
        print(said + (f"  {goal}" if goal else "") + (f"  ({beside})" if beside else ""), flush=True)
        self._keep({
            "name": name, "figure": figure, "goal": goal, "beside": beside,
            "reached": bool(is_reached) if word else None})

    @staticmethod
    def _keep(figure):
        if place := os.environ.get("KEYHAUL_FIGURES"):
            with pathlib.Path(place).open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(figure) + "\n")
