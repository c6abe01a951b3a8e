"""What a storm has cost: told from what was done and what the run printed. Pure but for what prints.

  tests/storm/ledger.py BLOWS STEPS    prints that of a storm over pods, and fails where a start lost more steps than it may. BLOWS has
                                       a line each: SECONDS STEP KIND, the step that was done when it came; STEPS is what
                                       tests/storm/steps.py printed
"""
import re
import sys


# The step at hand, which has no snapshot yet; and the one before, if its copy was on the way to a buddy when its pod was lost.
IN_FLIGHT = {"memory": 1, "a buddy": 2, "disk": 1}

# Of the kinds of a storm over pods, in which the run stands still behind a checkpoint when a blow comes: which end processes, and
# which let the run go on before they do.
ENDS_PROCESSES = {"rank", "launcher", "pod"}
LETS_GO_ON = {"pod"}


def percentile(values, share):
    """The smallest value that so large a share of them does not pass."""
    values = sorted(values)
    return values[max(0, -(-len(values) * share // 100) - 1)]


def losses(log):
    """Of a log of rank 0's: from where each start went on that knew what it had lost, and how many steps. What a run of another size
    left in memory may be a buddy's."""
    found = re.findall(r"^Resumed at step \d+ from (.*?) \((\d+) steps? lost\)$", log, re.MULTILINE)
    names = (("a buddy's", "a buddy"), ("memory of", "a buddy"), ("memory", "memory"), ("", "disk"))
    return [(next(name for words, name in names if words in source), int(lost)) for source, lost in found]


def starts(log):
    """Of a log of rank 0's: how many starts went on from "memory", "a buddy" and "disk", and the steps lost at each that knew."""
    sources, lost = {"memory": 0, "a buddy": 0, "disk": 0}, []
    for source, steps in losses(log):
        lost.append(steps)
        if source != "disk":
            sources[source] += 1
    sources["disk"] = len(re.findall("^Resumed from ", log, re.MULTILINE))
    return sources, lost


def may_lose(source=None, stands_still=False):
    """The rule: how many steps a start may lose, with a snapshot after each step. Those in flight; source: from where it goes on, None:
    not known. None if the run stood still behind a checkpoint."""
    if stands_still:
        return 0
    return IN_FLIGHT[source] if source else max(IN_FLIGHT.values())


def lost_more(log, numbers):
    """How many starts lost more than they may. Told twice, as below; the larger."""
    as_said = sum(lost > may_lose(source) for source, lost in losses(log))
    return max(as_said, sum(lost > may_lose() for lost in lost_steps(numbers)))


def lost_more_in_pods(blows, steps):
    """The same, of a storm over pods: what its log said has gone with its containers, and by when a step ended its blow is known. For
    each such start the steps lost, those that might have been, and the blow's kind."""
    more = []
    for end_s, lost in repeats((end_s, step) for end_s, step, _ in steps):
        kind = next((kind for struck_s, _, kind in reversed(blows) if struck_s < end_s), "nothing")
        most = may_lose(stands_still=kind not in LETS_GO_ON)
        if lost > most:
            more.append((lost, most, kind))
    return more


def explained(ends):
    """How many such starts there may be: those after two launchers lost their memory before one had a copy of the other's again, which
    it has before its ranks begin a step. ends: of the blows that end a launcher, in their order: which, when, and when the next step had
    ended."""
    return sum(a[0] != b[0] and b[1] < a[2] for a, b in zip(ends, ends[1:]))


def lost_steps(steps):
    """Of the numbers of steps in the order in which they were done: how many each new start did once more."""
    return [lost for _, lost in repeats((0, step) for step in steps)]


def repeats(steps):
    """steps: (when it ended, number), in the order in which they were done. When the first step of each new start ended that did some
    once more, and how many these were."""
    found, last = [], 0
    for end_s, step in steps:
        if step <= last:
            found.append((end_s, last - step + 1))
        last = step
    return found


def seconds_to_next(blows, steps):
    """blows: (seconds, step, kind); steps: (seconds, step, when its process began). From each blow to the end of the first step behind
    the one that was done; of a process that began later where the kind ends processes: a pod that is asked to end may do one more."""
    took = []
    for struck_s, done, kind in blows:
        ends = [end_s for end_s, step, began_s in steps
                if end_s > struck_s and step > done and (kind not in ENDS_PROCESSES or began_s > struck_s)]
        if not ends:
            raise ValueError(f"no step after step {done}, at which there was a blow: {kind}")
        took.append(ends[0] - struck_s)
    return took


def print_seconds(kinds, seconds):
    """Of each blow its kind, and the seconds from there to the end of the next step."""
    print(f"{'what':22} {'times':>5} {'median s':>9} {'p99 s':>9} {'worst s':>9}")
    for kind in [*dict.fromkeys(kinds), "all"]:
        took = [s for its, s in zip(kinds, seconds) if kind in (its, "all")]
        print(f"{kind:22} {len(took):5} {percentile(took, 50):9.2f} {percentile(took, 99):9.2f} {max(took):9.2f}")


def print_lost(lost):
    print(f"steps lost: {sum(lost)}, at most {max(lost, default=0)} at once", flush=True)


def print_ledger(blows, seconds, log, numbers, may_lose=0):
    """How many starts lost more than may be, beyond may_lose of them. seconds: {place in blows: from there to the end of the next step}. numbers: of all steps, in the order in which they were done.
    What was lost is told twice: a start from nothing does not know of the steps before it, and the numbers do."""
    print_seconds([blow.kind for blow in blows], [seconds[i] for i in range(len(blows))])
    sources, lost = starts(log)
    told = ", ".join(f"{count} from {name}" for name, count in sources.items())
    print(f"starts that went on: {sum(sources.values())} ({told})")
    print(f"steps lost, as the starts say: {sum(lost)}, at most {max(lost, default=0)} at once")
    print_lost(lost_steps(numbers))
    more = lost_more(log, numbers)
    print(f"starts that lost more than the steps in flight ({IN_FLIGHT['memory']}, or {IN_FLIGHT['a buddy']} from a buddy): {more}; "
          f"two lost launchers explain {may_lose}", flush=True)
    return max(0, more - may_lose)


def read_lines(path):
    with open(path) as file:
        return [line.split(maxsplit=2) for line in file]


def main(blows_path, steps_path):
    """What to complain of; nothing: None."""
    blows = [(float(struck_s), int(step), kind.strip()) for struck_s, step, kind in read_lines(blows_path)]
    steps = [(float(end_s), int(step), float(began_s)) for end_s, step, began_s in read_lines(steps_path)]
    print_seconds([kind for _, _, kind in blows], seconds_to_next(blows, steps))
    print_lost(lost_steps([step for _, step, _ in steps]))
    return "\n".join(f"a start after {kind} lost {lost} steps, where {most} may be" for lost, most, kind in lost_more_in_pods(blows, steps)) or None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
