"""One case: a scenario with one injection, with operators of its own in a namespace of its own, from begin to rest."""
import asyncio
import os
import re
import signal
from collections import namedtuple

import injections
import operator_program
import oracle
import world as truth
from proxy import Proxy

QUIET_S = 1.0       # without a request: then the operator rests
CALM_QUIET_S = 4.0  # nobody knows yet what it waits for
WATCHES = 4         # of an operator: jobs, pods, services, autoscalers
KUBECONFIG = """apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, user: test}}]
clusters: [{name: test, cluster: {server: "http://127.0.0.1:%d"}}]
users: [{name: test, user: {}}]
"""

# requests, events: their names in order; state, tally: as in oracle.py; watches: that are open at rest
Calm = namedtuple("Calm", "requests events state tally watches")


class Seat:
    """A namespace and a proxy, in which one case runs after the other."""

    def __init__(self, world, number, folder):
        self.world, self.namespace, self.folder = world, f"sieve-{os.getpid()}-{number}", f"{folder}/{number}"
        self.proxy, self.operators, self.scenario, self.watches = Proxy(world.api), {}, None, []
        os.makedirs(self.folder)

    async def open(self, listeners):
        await self.proxy.listen(listeners)
        await self.world.open_namespace(self.namespace)
        await self.world.empty(self.namespace)
        for listener, port in enumerate(self.proxy.ports):
            with open(f"{self.folder}/kubeconfig-{listener}", "w") as file:
                file.write(KUBECONFIG % port)

    # ---- operators

    def start(self, listener):
        self.operators[listener] = operator_program.start(f"{self.folder}/kubeconfig-{listener}", self.namespace, f"operator-{listener}",
                                                          self.scenario.flags, f"{self.folder}/log")

    async def end(self, listener, number=signal.SIGKILL):
        """Returns its exit code."""
        operator = self.operators.pop(listener)
        operator.send_signal(number)
        result = await asyncio.to_thread(operator.wait)
        self.proxy.hang_up(listener)
        return result

    async def kill(self, listener):
        """As a crash, after which another one starts."""
        if listener in self.operators:
            await self.end(listener)
            self.start(listener)

    async def hand_over(self):
        """The leader is asked to stop; one that loses its Lease is followed by another as it is."""
        if self.proxy.deposed is not None:
            await self.until("another one that leads", lambda: self.proxy.rules.holder not in (None, self.proxy.deposed))
            return
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/shoal-operator"
        end = truth.clock() + truth.PATIENCE_S
        while True:
            lease = (await self.world.api.ask("GET", path))[1]
            holder = re.match(r"operator-(\d+)", lease.get("spec", {}).get("holderIdentity", ""))
            # one that has just started in the place of one that was killed has the same name, and knows no signal yet
            if holder and int(holder[1]) in self.operators and self.proxy.watches_of(int(holder[1])):
                break
            if truth.clock() > end:
                raise truth.Stuck("nobody who is alive holds the lease")
            await asyncio.sleep(0.1)
        if result := await self.end(int(holder[1]), signal.SIGTERM):
            raise truth.Stuck(f"SIGTERM ends an operator with {result}")

    # ---- a case

    def state(self):
        return {name: oracle.masked(item, {self.namespace: "NAMESPACE"}) for name, item in self.world.objects[self.namespace].items()}

    def tally(self):
        return oracle.tally(self.world.lives[self.namespace])

    def rests(self, calm):
        return self.proxy.rests_for() > (QUIET_S if calm else CALM_QUIET_S) and (not calm or self.proxy.open_watches() == calm.watches)

    def is_as(self, calm):
        return self.state() == calm.state and self.tally() == calm.tally

    async def until(self, what, holds):
        await self.world.until(self.namespace, what, holds)

    async def play(self, scenario, injection, calm):
        """Up to where nothing more happens."""
        self.scenario = scenario
        await self.world.empty(self.namespace)
        with open(f"{self.folder}/log", "w"):
            pass
        self.proxy.begin(injection, self.kill, scenario.operators > 1)
        for listener in range(scenario.operators):
            self.start(listener)
        await self.until("the operator's watches", lambda: len(self.proxy.open_watches()) >= WATCHES * scenario.operators)
        await truth.Player(self.world, self.namespace, self.hand_over).run(scenario.steps)
        if len(self.operators) > 1:
            await self.end(self.proxy.deposed, signal.SIGTERM)
        if injections.OLD_LISTS.get(injection.kind, 0) is None and self.proxy.is_over:
            await self.until("rest", lambda: self.rests(calm))
            await self.proxy.go_back(min(self.operators))
        await self.until("rest", lambda: self.rests(calm) and (not calm or self.is_as(calm) or oracle.is_beyond(calm.tally, self.tally())))

    async def run(self, scenario, injection, calm):
        """What is not as in the calm run: [line]."""
        trouble = []
        try:
            await self.play(scenario, injection, calm)
        except truth.Stuck as stuck:
            trouble.append(str(stuck))
        finally:
            self.watches = self.proxy.open_watches()
            for listener in list(self.operators):
                await self.end(listener)
        trouble += self.proxy.rules.broken
        if calm:
            trouble += oracle.miscounts(calm.tally, self.tally()) + oracle.differences(calm.state, self.state())
        return trouble

    async def learn(self, scenario):
        """The calm run, and what was wrong in it."""
        trouble = await self.run(scenario, injections.CALM, None)
        proxy = self.proxy
        return Calm(proxy.requests.names, proxy.events.names, self.state(), self.tally(), self.watches), trouble
