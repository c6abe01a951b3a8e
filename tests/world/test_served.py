"""What an API server lacks is told before anything is tried on it: `python3 tests/world/test_served.py`."""
import asyncio

from command_line import Refused
from http1 import Answer
from world import World


class Server:
    """One that serves no PodGroups."""

    def __init__(self, lacks):
        self.lacks = lacks

    async def send(self, _, target):
        return Answer(404 if self.lacks and self.lacks in target else 200, {}, b"404 page not found")


def told(lacks):
    try:
        asyncio.run(World(Server(lacks)).check_served("run.sh"))
    except Refused as refused:
        return str(refused)
    return ""


assert told("") == ""
assert told("podgroups").startswith("the API server has no podgroups of scheduling.volcano.sh/v1beta1: "), told("podgroups")
assert told("/api/v1/pods").startswith("the API server has no pods of v1: "), told("/api/v1/pods")
