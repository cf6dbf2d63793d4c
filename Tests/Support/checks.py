"""Counts what holds and says each failure in a line."""


class Checks:
    def __init__(self):
        self.passed, self.failures = 0, []

    def check(self, holds, what):
        if holds:
            self.passed += 1
        else:
            self.failures.append(what)
            print(f"FAIL  {what}")

    def conclude(self):
        """Says the counts. Returns how a program ends: with 1 where a check failed, or none was made."""
        print(f"{self.passed} passed, {len(self.failures)} failed")
        return 1 if self.failures or not self.passed else 0
