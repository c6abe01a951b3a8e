"""Passes requests on to `kubectl proxy`, and knows nothing of Kueue's v1beta2: older.py SOCKET PORT"""
import asyncio
import sys

from http1 import Answer, head, printed, read_body, read_head

UNKNOWN = "/apis/kueue.x-k8s.io/v1beta2/"
NOT_FOUND = Answer(404, {"Content-Type": "text/plain"}, b"404 page not found\n")


async def pass_on(socket, method, target, headers, body, writer):
    """The connection ends with the answer."""
    above, below = await asyncio.open_unix_connection(socket)
    kept = {name: value for name, value in headers.items() if name not in ("connection", "content-length", "transfer-encoding")}
    below.write(head(f"{method} {target} HTTP/1.1", {**kept, "Connection": "close", "Content-Length": len(body)}) + body)
    try:
        while (part := await above.read(1 << 16)):
            writer.write(part)
            await writer.drain()
    finally:
        below.close()


async def serve(socket, reader, writer):
    try:
        while (request := await read_head(reader)):
            (method, target, _), headers = request
            body = await read_body(reader, headers)
            if not target.startswith(UNKNOWN):
                await pass_on(socket, method, target, headers, body, writer)
                break
            writer.write(printed(NOT_FOUND))
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def main(socket, port):
    server = await asyncio.start_server(lambda reader, writer: serve(socket, reader, writer), "127.0.0.1", int(port))
    await server.serve_forever()


asyncio.run(main(*sys.argv[1:]))
