"""The records of `tutti train`, for scripts: names that include/tutti/records.h and src/record/schemas.cpp give them, in one place."""
import json
import pathlib

FILE = "records.jsonl"


class Records:
    """A run's records as they are at this moment, also while it goes on: a line without its end is not there yet."""

    def __init__(self, run_folder):
        file = pathlib.Path(run_folder) / FILE
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        self._all = [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]

    def _of(self, kind):
        return [record for record in self._all if record["record"] == kind]

    def step_times(self):
        """Seconds of every step of the epochs that are over."""
        return [seconds for epoch in self._of("epoch") for seconds in epoch["step_s"]]

    def plan_steps(self):
        """The steps after which a plan was decided on."""
        return [plan["step"] for plan in self._of("plan")]

    def searches(self):
        """What `auto` tried: dictionaries with steps, chosen and candidates."""
        return [plan["search"] for plan in self._of("plan") if "search" in plan]

    def progress_steps(self):
        return [progress["step"] for progress in self._of("progress")]

    def progress_times(self):
        """When each progress record was written, in seconds."""
        return [progress["time"] for progress in self._of("progress")]
