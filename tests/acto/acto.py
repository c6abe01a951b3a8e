#!/usr/bin/env python3
"""Sets, changes, removes and spoils each field of a PyTorchJob (Acto's method, SOSP '23): docs/operator-proofs.md.

  tests/acto/acto.py                             all leaves of our CustomResourceDefinition
  tests/acto/acto.py --draw N [--seed S]         N of them, chosen at random
  tests/acto/acto.py --only PATH [REST]          those whose path has this text, at one rest
  tests/acto/acto.py --of-job                    those outside of pod templates

$KUBECONFIG is that of an API server that serves PyTorchJobs, $BUILD the folder of shoal-operator. Where another server
behind it has their CustomResourceDefinition (make check-newer), $CRD_KUBECONFIG is that one's.
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
from seat import Seat  # noqa: E402
from subjects import subjects  # noqa: E402
from world import PREFIXES, World  # noqa: E402

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/pytorchjobs.kubeflow.org"
RESTS = ("running", "suspended", "finished")
ONLY = f"only the leaves whose path has this text, and only at this rest ({', '.join(RESTS)}): up to two words, as a divergence prints them"
COLUMNS = ["histories", "has effect", "told why not", "unknown or default", "bad values", "refused", "told", "taken"]


def arguments():
    parser = command_line.parser("acto.py", __doc__, "leaves", random.SystemRandom().randrange(1 << 31), ONLY)
    parser.add_argument("--of-job", action="store_true", help="only the leaves outside of pod templates")
    options = parser.parse_args()
    command_line.check_words(parser, options.only, [("path", None), ("rest", RESTS)])
    return options


class Acto:
    def __init__(self, options):
        self.options, self.diverged = options, False
        self.rows = collections.defaultdict(collections.Counter)

    def chosen(self, found):
        path, rest = [*self.options.only, None, None][:2]
        found = [subject for subject in found if (not path or path in subject.path) and rest in (None, subject.rest)
                 and (not self.options.of_job or subject.of_job)]
        if not found:
            of_job = " of the job itself" if self.options.of_job else ""
            raise command_line.Refused(f"no leaf{of_job} has {path!r} in its path" + (f" and is tried {rest}" if rest else ""))
        if self.options.draw is not None:
            print(f"seed {self.options.seed}: {self.options.draw} of {len(found)}, half of them not of pod templates", flush=True)
            draw, number = random.Random(self.options.seed), self.options.draw
            parts = [[subject for subject in found if subject.of_job == kind] for kind in (True, False)]
            of_job = min(max(number // 2, number - len(parts[1])), len(parts[0]))
            found = draw.sample(parts[0], of_job) + draw.sample(parts[1], min(number - of_job, len(parts[1])))
        return sorted(found, key=lambda subject: subject.flags)  # another flag is another operator

    async def sit(self, seat, left):
        """Tries what is left."""
        while left and not (self.options.first and self.diverged):
            subject = left.pop(0)
            await subject.run(seat)
            row = self.rows["of the job" if subject.of_job else "of its pod templates", subject.rest]
            row.update(subject.counts)
            row.update(leaves=1, divergences=bool(subject.trouble))
            if subject.trouble:
                self.diverged = True
                again = shlex.join(["tests/acto/run.sh", "--only", subject.path, subject.rest])
                print(f"DIVERGED: {again}", *subject.trouble[:20], sep="\n    ")
                with open(seat.log) as log:
                    print("    the operator's log:", *log.read().splitlines()[-15:], sep="\n        ", flush=True)
        await seat.close()

    def table(self):
        print("| leaves | at rest | number |", " | ".join(COLUMNS), "| divergences |")
        print("| --- " * (len(COLUMNS) + 4) + "|")
        for (kind, rest), row in sorted(self.rows.items()):
            print("|", " | ".join(map(str, [kind, rest, row["leaves"], *(row[name] for name in COLUMNS), row["divergences"]])), "|")

    async def run(self, world, folder):
        crd_api = command_line.api("CRD_KUBECONFIG", "tests/acto/run.sh") if os.environ.get("CRD_KUBECONFIG") else world.api
        crd = (await crd_api.ask("GET", CRD))[1]
        left = self.chosen(subjects(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]))
        seats = [Seat(world, number, folder) for number in range(self.options.seats)]
        await asyncio.gather(*(seat.open() for seat in seats))
        await asyncio.gather(*(self.sit(seat, left) for seat in seats))
        self.table()
        return 1 if self.diverged or not self.rows else 0


async def prepare(api):
    """Cluster-wide objects that template_values.py names."""
    for name in "a1", "b2":
        await api.ask("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": 7})
        await api.ask("POST", "/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": name}, "handler": name})


async def main():
    options = arguments()
    if options.check:
        command_line.check_program()
        return 0
    world = World(command_line.api("KUBECONFIG", "tests/acto/run.sh"))
    await world.check_served("tests/acto/run.sh")
    await prepare(world.api)
    with tempfile.TemporaryDirectory() as folder:
        followers = [asyncio.create_task(world.follow(plural)) for plural in PREFIXES]
        work = asyncio.create_task(Acto(options).run(world, folder))
        done, _ = await asyncio.wait([work, *followers], return_when=asyncio.FIRST_COMPLETED)
        return next(iter(done)).result()  # followers end by failing alone


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main()))
    except command_line.Refused as refused:
        print(f"acto.py: {refused}", file=sys.stderr)
        sys.exit(2)
