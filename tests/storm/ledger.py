"""What a storm has cost: told from what was done and what the run printed. Pure but for print_ledger()."""
import re


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


def print_ledger(blows, seconds, log):
    """seconds: {place in blows: from there to the end of the next step}."""
    print(f"{'what':22} {'times':>5} {'median s':>9} {'p99 s':>9} {'worst s':>9}")
    kinds = list(dict.fromkeys(blow.kind for blow in blows))
    for kind in [*kinds, "all"]:
        took = [seconds[i] for i, blow in enumerate(blows) if kind in (blow.kind, "all")]
        print(f"{kind:22} {len(took):5} {percentile(took, 50):9.2f} {percentile(took, 99):9.2f} {max(took):9.2f}")
    sources, lost = starts(log)
    told = ", ".join(f"{count} from {name}" for name, count in sources.items())
    print(f"starts that went on: {sum(sources.values())} ({told})")
    print(f"steps lost: {sum(lost)}, at most {max(lost, default=0)} at once", flush=True)
