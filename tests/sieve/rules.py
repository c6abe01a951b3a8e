"""What an operator must not do, whatever happens to it. Pure: times are arguments, in seconds."""
from trace import is_write

NEVER_AGAIN = "POST events"  # an event is not tried again: the next of its name is another one


class Rules:
    """Of one case. elects: whether only the operator that holds the Lease may write. broken: [line], what was done against them."""

    def __init__(self, elects):
        self.elects, self.holder, self.early, self.broken = elects, None, {}, []

    def told_to_wait(self, listener, name, until):
        """Its request was refused with a Retry-After. name: without the number that it has in this run."""
        if not name.startswith(NEVER_AGAIN):
            self.early[listener, name] = until

    def asks(self, listener, name, now):
        until = self.early.pop((listener, name), now)
        if now < until:
            self.broken.append(f"{name}: asked again {until - now:.2f} s before its Retry-After is over")
        if self.elects and is_write(name) and listener != self.holder:
            self.broken.append(f"{name}: operator {listener} writes, and the Lease is {self.told_holder()}")

    def told_holder(self):
        return "nobody's" if self.holder is None else f"operator {self.holder}'s"

    def lease_is_stored(self, listener, holder):
        """holder: as the Lease names it; empty: it was given up."""
        self.holder = listener if holder else None

    def ends(self, listener):
        """The operator was killed or has ended. What comes after it knows of nothing."""
        self.holder = None if self.holder == listener else self.holder
        self.early = {(of, name): until for (of, name), until in self.early.items() if of != listener}
