"""Which connections a client uses again: `python3 tests/world/test_http1.py`."""
import asyncio

import http1


class Client(http1.Api):
    """Of a server of this test, without TLS."""

    def __init__(self, port):
        self.host, self.port, self.idle = "127.0.0.1", port, []

    async def open(self):
        return await asyncio.open_connection(self.host, self.port)


async def connections(sends, closes, idle_s):
    """How many it takes to send so often to a server that closes each after an answer, or none."""
    served, http1.IDLE_S = [], idle_s

    async def serve(reader, writer):
        served.append(asyncio.current_task())
        while await http1.read_head(reader):
            writer.write(http1.printed(http1.Answer(200, {}, b"{}")))
            if closes:
                break
        writer.close()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    client = Client(server.sockets[0].getsockname()[1])
    for _ in range(sends):
        assert (await client.send("GET", "/")).body == b"{}"
        if closes:  # until the client knows it
            await asyncio.wait_for(client.idle[-1][1][0].read(), 10)
    for _, (_, writer) in client.idle:
        writer.close()
    server.close()
    await asyncio.gather(*served)
    return len(served)


for expected, closes, idle_s in (1, False, 30), (3, True, 30), (3, False, 0):
    got = asyncio.run(connections(3, closes, idle_s))
    assert got == expected, (got, expected, closes, idle_s)
