"""Where the time of a job that has ended went, as its status says. Pure but for what prints.

  kubectl get pytorchjob NAME -o json | tests/storm/goodput.py    prints the seconds by kind, and fails unless they add up to the
                                                                  time from the job's creation to its end
"""
import datetime
import json
import sys

OFF_MOST = 0.01  # of the time that went by
CUT_S = 1  # the API's times are cut to whole seconds, and the last process knows its end to the millisecond
NOT_COUNTED = ("suspended", "untold")  # the goodput leaves them out


def unix(time):
    return datetime.datetime.strptime(time, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.timezone.utc).timestamp()


def wall_seconds(job):
    return unix(job["status"]["completionTime"]) - unix(job["metadata"]["creationTimestamp"])


def table(job):
    """Its lines: a kind, its seconds and its share, the most first; their sum and the time that went by."""
    training = job["status"]["training"]
    spent, wall = training["seconds"], wall_seconds(job)
    lines = [f"{kind:18} {seconds:9.2f} {100 * seconds / wall:5.1f} %" for kind, seconds in sorted(spent.items(), key=lambda item: -item[1])]
    return [*lines, f"{'sum':18} {sum(spent.values()):9.2f} of {wall:.0f} s; goodput {training.get('goodputPercent', 'not known')}"]


def faults(job):
    """What does not hold; nothing: all does."""
    training = job["status"]["training"]
    spent, wall = training["seconds"], wall_seconds(job)
    found, total = [], sum(spent.values())
    if max(wall - total, total - wall - CUT_S) > OFF_MOST * wall:
        found.append(f"{total:.2f} s are told of {wall:.0f} s: more than {100 * OFF_MOST:.0f} % off")
    if min(spent.values(), default=0) < 0:
        found.append("a kind has less than no time")
    if "secondsKind" in training:
        found.append(f"the job has ended, and {training['secondsKind']} goes on")
    counted = sum(seconds for kind, seconds in spent.items() if kind not in NOT_COUNTED)
    if counted <= 0 or abs(training.get("goodput", -1) - spent.get("step", 0) / counted) > 0.001:
        found.append(f"goodput is {training.get('goodput')}, not the share of steps")
    return found


if __name__ == "__main__":
    this = json.load(sys.stdin)
    print("\n".join(table(this)))
    sys.exit("\n".join(faults(this)) or None)
