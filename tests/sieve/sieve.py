#!/usr/bin/env python3
"""Tries the shipped operator at every request and every watch event of small scenarios (Sieve's method, OSDI '22): docs/operator-proofs.md.

  tests/sieve/sieve.py                               all cases
  tests/sieve/sieve.py --draw N [--seed S]           N cases, chosen at random
  tests/sieve/sieve.py --only SCENARIO [KIND [AT]]   those of a scenario, of a kind, at one request or event; --trace tells what came

$KUBECONFIG is that of an API server with our CustomResourceDefinition, $BUILD the folder of shoal-operator.
"""
import asyncio
import collections
import os
import random
import shlex
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../world"))  # what both share
import command_line  # noqa: E402
import injections  # noqa: E402
from case import Seat  # noqa: E402
from scenarios import SCENARIOS  # noqa: E402
from world import PREFIXES, World  # noqa: E402

ONLY = "only the cases of a scenario, of a kind, at a request or event: up to three words, as a divergence prints them. A wrong one lists the right ones"
MISSED_MAX = 0.03  # of all cases: a second status write may come in one run and not in the next


def words():
    """All that --only takes but for requests and events, which a run tells."""
    def listed(what, table):
        return [f"{what}:", *(f"  {name:12}{means}".rstrip() for name, means in table.items())]
    return "\n".join([*listed("scenarios", {scenario.name: "" for scenario in SCENARIOS}),
                      *listed("kinds, at a request", injections.REQUEST_KINDS),
                      *listed("kinds, at what a leader writes", injections.LEADER_KINDS), *listed("kinds, at a watch event", injections.EVENT_KINDS)])


def arguments():
    parser = command_line.parser("sieve.py", __doc__, "cases", random.SystemRandom().randrange(1 << 31), ONLY)
    parser.add_argument("--trace", action="store_true", help="tells of each case its requests, its events and the operator's log, as if it diverged")
    parser.epilog = words()
    options = parser.parse_args()
    kinds = [injections.CALM.kind, *injections.REQUEST_KINDS, *injections.LEADER_KINDS, *injections.EVENT_KINDS]
    command_line.check_words(parser, options.only, [("scenario", [s.name for s in SCENARIOS]), ("kind", kinds), ("request or event", None)])
    return options


def again(scenario, injection):
    """The command that runs a case alone."""
    return shlex.join(["tests/sieve/run.sh", "--only", scenario.name, injection.kind, *([injection.at] if injection.at else [])])


def tell(seat, scenario, injection, trouble):
    """A divergence, and how to see it again."""
    print(f"{'DIVERGED' if trouble else 'ok'}: {again(scenario, injection)}", *trouble[:20], sep="\n    ")
    for what, names in ("requests", seat.proxy.requests.told()), ("events", seat.proxy.events.told()):
        print(f"    {what}: {', '.join(names)}")
    with open(f"{seat.folder}/log") as log:
        print("    the operator's log:", *log.read().splitlines()[-25:], sep="\n        ", flush=True)


class Sieve:
    def __init__(self, options):
        self.trace, self.first = options.trace, options.first
        self.only = dict(zip(("scenario", "kind", "at"), options.only))
        self.scenarios = [s for s in SCENARIOS if self.only.get("scenario", s.name) == s.name]
        self.calms, self.seats, self.ran, self.missed, self.diverged = {}, asyncio.Queue(), *(collections.Counter() for _ in range(3))

    async def on_a_seat(self, work, *arguments):
        seat = await self.seats.get()
        try:
            return await work(seat, *arguments)
        finally:
            self.seats.put_nowait(seat)

    async def learn(self, seat, scenario):
        calm, trouble = await seat.learn(scenario)
        if trouble:
            tell(seat, scenario, injections.CALM, trouble)
            sys.exit(f"sieve: the calm run of \"{scenario.name}\" does not end")
        self.calms[scenario.name] = calm

    async def try_one(self, seat, scenario, injection):
        if self.first and self.diverged:
            return
        trouble = await seat.run(scenario, injection, self.calms[scenario.name])
        self.ran[scenario.name] += 1
        self.missed[scenario.name] += injection.at is not None and not seat.proxy.is_over
        if trouble:
            self.diverged[scenario.name] += 1
        if trouble or self.trace:
            tell(seat, scenario, injection, trouble)

    def cases(self):
        found = []
        for scenario in self.scenarios:
            calm = self.calms[scenario.name]
            found.append((scenario, injections.CALM))
            found += [(scenario, injection) for injection in injections.cases(calm.requests, calm.events, scenario.operators > 1)]
        return [(scenario, injection) for scenario, injection in found
                if self.only.get("kind", injection.kind) == injection.kind and self.only.get("at", injection.at) == injection.at]

    def table(self):
        print("| scenario | requests | events | cases | not met | divergences |\n| --- | --- | --- | --- | --- | --- |")
        for name, calm in self.calms.items():
            print(f"| {name} | {len(calm.requests)} | {len(calm.events)} | {self.ran[name]} | {self.missed[name]} | {self.diverged[name]} |")

    async def run(self, options, world, folder):
        for number in range(options.seats):
            seat = Seat(world, number, folder)
            await seat.open(max(s.operators for s in SCENARIOS))
            self.seats.put_nowait(seat)
        await asyncio.gather(*(self.on_a_seat(self.learn, scenario) for scenario in self.scenarios))
        cases = self.cases()
        if not cases:
            names = [name for calm in self.calms.values() for name in [*calm.requests, *calm.events]]
            raise command_line.Refused(f"no case is {options.only}; requests and events are {names}")
        if options.draw is not None:
            print(f"seed {options.seed}: {options.draw} of {len(cases)} cases", flush=True)
            cases = random.Random(options.seed).sample(cases, min(options.draw, len(cases)))
        await asyncio.gather(*(self.on_a_seat(self.try_one, *case) for case in cases))
        self.table()
        missed = self.missed.total() > MISSED_MAX * self.ran.total() + 1
        if missed:
            print(f"{self.missed.total()} of {self.ran.total()} cases have not met what they are about: what is tried is not what is said")
        return 1 if self.diverged.total() or missed or not self.ran.total() else 0


async def main():
    options = arguments()
    if options.check:
        command_line.check_program()
        return 0
    world = World(command_line.api("KUBECONFIG", "tests/sieve/run.sh"))
    await world.check_served("tests/sieve/run.sh")
    with tempfile.TemporaryDirectory() as folder:
        followers = [asyncio.create_task(world.follow(plural)) for plural in PREFIXES]
        work = asyncio.create_task(Sieve(options).run(options, world, folder))
        done, _ = await asyncio.wait([work, *followers], return_when=asyncio.FIRST_COMPLETED)
        return next(iter(done)).result()  # followers end by failing alone


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main()))
    except command_line.Refused as refused:
        print(f"sieve.py: {refused}", file=sys.stderr)
        sys.exit(2)
