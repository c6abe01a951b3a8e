"""What a storm does, and when: a pure function of its seed.

  tests/storm/schedule.py SEED COUNT RANKS KIND...    prints a line a blow: KIND VICTIM
"""
import random
import sys
from collections import namedtuple

# kind: one of those asked for; after_s: behind the blow before it; victim, other: numbers to choose processes by, never the same
# rank; seconds: that a stopped process stands still
Blow = namedtuple("Blow", "kind after_s victim other seconds")

CLOSE_EACH = 4  # so often one comes while the ranks still recover from the one before
CLOSE_S = 1.0
SHORTEST_STOP_S, LONGEST_STOP_S = 0.05, 3.0


def schedule(seed, count, every_s, ranks, kinds):
    """`count` blows, `every_s` apart in the mean. Each kind comes once before any comes twice, and so on."""
    rng = random.Random(seed)
    blows, left = [], []
    for i in range(count):
        if not left:
            left = rng.sample(kinds, len(kinds))
        is_close = i % CLOSE_EACH == CLOSE_EACH - 1
        after_s = rng.uniform(0, CLOSE_S) if is_close else rng.uniform(0.5, 1.5) * every_s
        victim, other = rng.sample(range(ranks), 2)
        blows.append(Blow(left.pop(), after_s, victim, other, rng.uniform(SHORTEST_STOP_S, LONGEST_STOP_S)))
    return blows


if __name__ == "__main__":
    asked_seed, asked_count, asked_ranks = map(int, sys.argv[1:4])
    for asked in schedule(asked_seed, asked_count, 1, asked_ranks, sys.argv[4:]):
        print(asked.kind, asked.victim)
