"""The lines of steps, as a run writes them, and the first that is one of after a blow.

  tests/storm/steps.py FILE    prints SECONDS STEP BEGAN for each as it is written, until its parent ends: when that was, and when the
                               step's process began, by the clock of /proc/uptime
"""
import json
import os
import sys
import time
from collections import namedtuple

# written_s: not before; process_s, step_s: how long its process and its step had run by then; step: its number
Line = namedtuple("Line", "written_s process_s step_s step")
LOOK_EACH_S = 0.02


class Steps:
    """clock: seconds, as of time.monotonic()."""

    def __init__(self, path, clock):
        self.path, self.clock, self.file, self.rest = path, clock, None, ""
        self.looked = clock()
        self.numbers = []  # of all steps that were read, in their order

    def take(self):
        """The new lines. What is read now was written since the last look."""
        before, self.looked = self.looked, self.clock()
        if not self.file:
            if not os.path.exists(self.path):
                return []
            self.file = open(self.path)
        self.rest += self.file.read()
        *lines, self.rest = self.rest.split("\n")
        objects = [json.loads(line) for line in lines]
        new = [Line(before, o["elapsed_seconds"], o["step_seconds"], o["step"]) for o in objects if o.get("step_seconds") is not None]
        self.numbers += [line.step for line in new]
        return new


def is_after(line, struck_s, is_of_new_process):
    """Whether that step began after then; if asked, whether its process did."""
    return line.written_s - (line.process_s if is_of_new_process else line.step_s) > struck_s


def since_boot():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


if __name__ == "__main__":
    parent, reader = os.getppid(), Steps(sys.argv[1], since_boot)
    while os.getppid() == parent:
        for new in reader.take():
            print(f"{reader.looked:.3f} {new.step} {new.written_s - new.process_s:.3f}", flush=True)
        time.sleep(LOOK_EACH_S)
