"""What a storm has cost: told from what was done and what the run printed. Pure but for what prints.

  tests/storm/ledger.py BLOWS STEPS    prints that of a storm over pods. BLOWS has a line each: SECONDS STEP KIND, the step that was
                                       done when it came; STEPS is what tests/storm/steps.py printed
"""
import re
import sys


ENDS_PROCESSES = {"rank", "launcher", "pod"}  # of the kinds of a storm over pods


def percentile(values, share):
    """The smallest value that so large a share of them does not pass."""
    values = sorted(values)
    return values[max(0, -(-len(values) * share // 100) - 1)]


def starts(log):
    """Of a log of rank 0's: how many starts went on from "memory", "a buddy" and "disk", and the steps lost at each that knew."""
    sources, lost = {"memory": 0, "a buddy": 0, "disk": 0}, []
    for line in log.splitlines():
        found = re.match(r"Resumed at step \d+ from (memory.*?|.*) \((\d+) steps? lost\)$", line)
        if found:
            lost.append(int(found[2]))
        if found and found[1].startswith("memory"):
            sources["a buddy" if "a buddy's" in found[1] else "memory"] += 1
        elif line.startswith("Resumed from "):
            sources["disk"] += 1
    return sources, lost


def lost_steps(steps):
    """Of the numbers of steps in the order in which they were done: how many each new start did once more."""
    lost, last = [], 0
    for step in steps:
        if step <= last:
            lost.append(last - step + 1)
        last = step
    return lost


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


def print_ledger(blows, seconds, log, numbers):
    """seconds: {place in blows: from there to the end of the next step}. numbers: of all steps, in the order in which they were done.
    What was lost is told twice: a start from nothing does not know of the steps before it, and the numbers do."""
    print_seconds([blow.kind for blow in blows], [seconds[i] for i in range(len(blows))])
    sources, lost = starts(log)
    told = ", ".join(f"{count} from {name}" for name, count in sources.items())
    print(f"starts that went on: {sum(sources.values())} ({told})")
    print(f"steps lost, as the starts say: {sum(lost)}, at most {max(lost, default=0)} at once")
    print_lost(lost_steps(numbers))


def read_lines(path):
    with open(path) as file:
        return [line.split(maxsplit=2) for line in file]


def main(blows_path, steps_path):
    blows = [(float(struck_s), int(step), kind.strip()) for struck_s, step, kind in read_lines(blows_path)]
    steps = [(float(end_s), int(step), float(began_s)) for end_s, step, began_s in read_lines(steps_path)]
    print_seconds([kind for _, _, kind in blows], seconds_to_next(blows, steps))
    print_lost(lost_steps([step for _, step, _ in steps]))


if __name__ == "__main__":
    main(*sys.argv[1:])
