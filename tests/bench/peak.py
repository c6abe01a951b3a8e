"""Runs a command and says what it and its children took at most: `peak.py COMMAND...` prints the command's output
and then `peak resident bytes: N`, N of the largest process."""

import resource
import subprocess
import sys

status = subprocess.call(sys.argv[1:])
print(f"peak resident bytes: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024}", flush=True)
sys.exit(status)
