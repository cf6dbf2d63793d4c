"""Count checks, and print those that fail."""


class Checks:
    """The checks of one run."""

    def __init__(self):
        self.passed, self.failures = 0, []

    def check(self, condition, message):
        """Count a check. Print the message if the condition is false."""
        if condition:
            self.passed += 1
        else:
            self.failures.append(message)
            print(f"FAIL  {message}")

    def finish(self):
        """Print the counts. Return the exit code: 1 if a check failed or there was none, else 0."""
        print(f"{self.passed} passed, {len(self.failures)} failed")
        return 1 if self.failures or not self.passed else 0
