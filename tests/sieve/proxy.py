"""Stands between the operators and the API server: learns the names of requests and watch events, and does what one case asks for."""
import asyncio
import json
import time

import injections
from http1 import Answer, Lines, head, printed, read_body, read_head
from rules import Rules
from trace import Trace, event_name, is_watch, plural_of, request_name

PASSED_ON = ("accept", "content-type", "user-agent")
JOBS = "pytorchjobs"
GO_BACK = "go back"  # what meet() says where an operator with old lists is to start
GATHER_S = 0.05  # within which events come that go out at once
BROKEN = (ConnectionError, asyncio.IncompleteReadError)


class Proxy:
    """One listener an operator: kill(i), of the case, kills the one that speaks to listener i and starts another in its place."""

    def __init__(self, api):
        self.api, self.ports, self.servers, self.writers, self.tasks = api, [], [], {}, set()
        self.begin(injections.CALM, None, False)

    async def listen(self, listeners):
        for i in range(listeners):
            self.servers.append(await asyncio.start_server(lambda reader, writer, i=i: self.serve(i, reader, writer), "127.0.0.1", 0))
            self.ports.append(self.servers[-1].sockets[0].getsockname()[1])

    def begin(self, injection, kill, elects):
        """A new case: what is left of the last one is closed. elects: as of Rules."""
        self.injection, self.kill, self.rules = injection, kill, Rules(elects)
        self.requests, self.events = Trace(), Trace()
        self.is_over = False  # the injection has happened
        self.hold_until, self.hold_children_until, self.active_at = 0, 0, time.monotonic()
        self.deposed, self.deposed_until = None, 0  # the listener whose requests for the Lease are lost
        self.asking = set()  # connections on which a request is under way
        self.watches = {}  # {connection: plural} of those that are open
        self.stale_version, self.stale_in = None, None  # that of the injection's event; how many events later another operator starts
        self.stale_listener, self.stale_lists = None, set()  # whose first lists of these kinds are old
        for listener in range(len(self.ports)):
            self.hang_up(listener)

    def hang_up(self, listener):
        self.active_at = time.monotonic()
        self.rules.ends(listener)
        for writer in [writer for writer, of in self.writers.items() if of == listener]:
            writer.transport.abort()
            del self.writers[writer]
            self.watches.pop(writer, None)
            self.asking.discard(writer)

    def take(self, name):
        """The kind of the injection, if this is where it happens."""
        if self.is_over or name != self.injection.at:
            return None
        if self.injection.kind in injections.LEADER_KINDS and len(set(self.writers.values())) < 2:
            return None  # nobody would take over
        self.is_over = True
        return self.injection.kind

    async def go_back(self, listener):
        """Another operator takes the place of this one: its first list of each kind is as of the event of the injection, and watches are late."""
        self.stale_lists = set(self.watches_of(listener))
        self.stale_listener = listener
        self.hold_until = time.monotonic() + injections.HOLD_S
        if self.injection.kind.startswith("behind"):
            self.hold_children_until = self.hold_until + 4 * injections.HOLD_S
        await self.kill(listener)

    def rests_for(self):
        """How many seconds ago the last request was over; 0: one is not. Requests for a lease do not count."""
        return 0 if self.asking else time.monotonic() - self.active_at

    def open_watches(self):
        """Of all operators: [plural], sorted."""
        return sorted(self.watches.values())

    def watches_of(self, listener):
        """[plural]"""
        return [plural for writer, plural in self.watches.items() if self.writers.get(writer) == listener]

    async def serve(self, listener, reader, writer):
        self.writers[writer] = listener
        self.tasks.add(asyncio.current_task())  # asyncio itself does not keep it
        try:
            while (request := await read_head(reader)):
                (method, target, _), headers = request
                body = await read_body(reader, headers)
                passed_on = {name: headers[name] for name in PASSED_ON if name in headers}
                name = request_name(method, target, body)
                if writer in self.writers:  # else its operator was killed meanwhile
                    self.rules.asks(listener, name, time.monotonic())
                name = self.requests.note(name)
                if not await self.exchange(listener, name, (method, target, passed_on, body), reader, writer):
                    break
        except BROKEN:
            pass
        except asyncio.CancelledError:  # all is over: passed on, it would make asyncio's streams complain
            pass
        finally:
            self.writers.pop(writer, None)
            self.tasks.discard(asyncio.current_task())
            writer.close()

    async def exchange(self, listener, name, request, reader, writer):
        """Returns whether the connection goes on."""
        kind, is_lease = self.take(name), " leases" in name
        if kind in injections.REFUSALS:
            self.refuse(listener, name, injections.refusal(kind), writer)
            return True
        if kind == "deposed":
            self.deposed, self.deposed_until = listener, time.monotonic() + injections.DEPOSED_S
        if is_lease and listener == self.deposed and time.monotonic() < self.deposed_until:
            return False
        if is_watch(request[1]):
            self.active_at = time.monotonic()
            return await self.stream(listener, kind, request, reader, writer)
        if not is_lease:
            self.asking.add(writer)
        try:
            answer = await self.forward(listener, *request)
        finally:
            self.asking.discard(writer)
            if not is_lease:
                self.active_at = time.monotonic()
        self.requests.answered(name, answer.status)
        if is_lease and request[0] != "GET" and answer.status < 300 and writer in self.writers:
            self.rules.lease_is_stored(listener, json.loads(answer.body)["spec"].get("holderIdentity"))
        return await self.answer(listener, kind, answer, writer)

    def refuse(self, listener, name, answer, writer):
        self.active_at = time.monotonic()
        self.requests.answered(name, answer.status)
        if "Retry-After" in answer.headers:
            self.rules.told_to_wait(listener, name.rsplit(" #", 1)[0], self.active_at + int(answer.headers["Retry-After"]))
        writer.write(printed(answer))

    async def forward(self, listener, method, target, headers, body):
        plural = plural_of(target)
        if method == "GET" and listener == self.stale_listener and plural in self.stale_lists and "limit=" in target:
            self.stale_lists.remove(plural)
            self.hold_until = max(self.hold_until, time.monotonic() + injections.HOLD_S)
            target += f"&resourceVersion={self.stale_version}&resourceVersionMatch=Exact"
        status, answer_headers, body = await self.api.send(method, target, headers, body)
        return Answer(status, {name: value for name, value in answer_headers.items() if name in ("content-type", "retry-after")}, body)

    async def answer(self, listener, kind, answer, writer):
        data = printed(answer)
        if kind == "kill":
            await self.kill(listener)
        elif kind == "torn":
            writer.write(data[:len(data) - len(answer.body) // 2 - 1])
            await writer.drain()
        elif kind != "no-answer":
            writer.write(data)
            await writer.drain()
            return True
        return False

    async def stream(self, listener, kind, request, reader, writer):
        if kind in ("kill", "no-answer"):
            if kind == "kill":
                await self.kill(listener)
            return False
        method, target, headers, _ = request
        status, answer_headers, upstream, upstream_writer = await self.api.watch(target, headers)
        if writer in self.writers:  # else its operator was killed meanwhile
            self.watches[writer] = plural_of(target)
        try:
            if status != 200:
                return await self.answer(listener, None, Answer(status, {}, await read_body(upstream, answer_headers)), writer)
            writer.write(head("HTTP/1.1 200 OK", {"Content-Type": "application/json", "Transfer-Encoding": "chunked"}))
            if kind != "torn":
                await self.pass_on(listener, plural_of(target), Lines(upstream), reader, writer)
            return False
        finally:
            self.watches.pop(writer, None)
            upstream_writer.close()

    def is_held(self, plural):
        return time.monotonic() < (self.hold_until if plural == JOBS else max(self.hold_until, self.hold_children_until))

    def has_sent(self, plural):
        if plural == JOBS:
            self.hold_children_until = min(self.hold_children_until, time.monotonic() + injections.HOLD_S)

    async def pass_on(self, listener, plural, lines, reader, writer):
        """Events, until one side ends."""
        gathered = []  # events that go out at once

        def send(line):
            writer.write(f"{len(line) + 1:x}\r\n".encode() + line + b"\n\r\n")

        async def send_gathered():
            if gathered:
                send(b"\n".join(gathered))
                gathered.clear()
                await writer.drain()
                self.has_sent(plural)

        async def more_comes():
            """Of what comes late, all is to be read before the operator looks at any of it."""
            return self.hold_children_until and (await asyncio.wait({following}, timeout=GATHER_S))[0]

        async def end_later():
            await asyncio.sleep(injections.HOLD_S)
            send(injections.gone_event())

        async def end_of_operator():  # it has nothing more to say
            try:
                await reader.read(1)
            except ConnectionError:
                pass
        ends = {asyncio.create_task(end_of_operator())}
        following = asyncio.create_task(lines.next())
        try:
            while True:
                done, _ = await asyncio.wait({following, *ends}, return_when=asyncio.FIRST_COMPLETED)
                line = None if done & ends else following.result()
                if line is None:
                    await send_gathered()
                    return
                kind = self.meet(plural, line)
                if kind == GO_BACK:
                    await self.go_back(listener)
                    return
                if kind == "drop":
                    ends.add(asyncio.create_task(end_later()))
                elif kind == "cut":
                    return
                elif kind == "gone":
                    send(injections.gone_event())
                    await writer.drain()
                    return
                while self.is_held(plural) and not any(end.done() for end in ends):
                    await asyncio.sleep(0.05)
                if kind != "drop":
                    gathered.append(line)
                following = asyncio.create_task(lines.next())
                if not await more_comes():
                    await send_gathered()
        finally:
            for task in [following, *ends]:
                task.cancel()

    def meet(self, plural, line):
        """Notes an event; returns what happens to it."""
        event = json.loads(line)
        name = event_name(plural, event)
        if not name:
            return None
        kind = self.take(self.events.note(name))
        if kind == "hold":
            self.hold_until = time.monotonic() + injections.HOLD_S
        elif kind in injections.OLD_LISTS:
            self.stale_version, self.stale_in = event["object"]["metadata"]["resourceVersion"], injections.OLD_LISTS[kind]
        elif self.stale_in:
            self.stale_in -= 1
        if self.stale_in is None:
            return kind
        self.is_over = self.stale_in == 0
        if not self.is_over:
            return None
        self.stale_in = None
        return GO_BACK
