"""autoscaling_v2.py KUBECONFIG PORT: serves the API server of KUBECONFIG, without TLS or rights, on 127.0.0.1:PORT.

An API server before 1.23 has autoscalers as autoscaling/v2beta2 alone, whose fields are those of v2. Here they are served as v2, too, to
a program that knows nothing older. Everything else is passed on.
"""
import asyncio
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../world"))
from http1 import Answer, Api, head, printed, read_body, read_chunk, read_head  # noqa: E402

NEW, OLD = "autoscaling/v2", "autoscaling/v2beta2"
PASSED_ON = ("accept", "content-type", "user-agent")
PROTOBUF = b"k8s\0\x0a"  # its magic number, then runtime.Unknown's first field: the kind and its version


def to_old(body):
    """A request's object, in JSON or Kubernetes's protobuf envelope."""
    if not body.startswith(PROTOBUF):
        return body.replace(f'"{NEW}"'.encode(), f'"{OLD}"'.encode())
    end = 6 + body[5]  # the lengths are below 128: one byte each
    kind = body[6:end]
    assert kind[0] == 0x0A and kind[2:2 + kind[1]] == NEW.encode()
    kind = bytes([0x0A, len(OLD)]) + OLD.encode() + kind[2 + kind[1]:]
    return PROTOBUF + bytes([len(kind)]) + kind + body[end:]


def to_new(text):
    return text.replace(OLD.encode(), NEW.encode())


def with_v2(body):
    """The list of API groups."""
    groups = json.loads(body)
    for group in groups["groups"]:
        if group["name"] == "autoscaling":
            group["versions"].append({"groupVersion": NEW, "version": "v2"})
    return json.dumps(groups).encode()


class Server:
    def __init__(self, api):
        self.api = api

    async def serve(self, reader, writer):
        try:
            while (request := await read_head(reader)):
                (method, target, _), headers = request
                body = await read_body(reader, headers)
                headers = {name: headers[name] for name in PASSED_ON if name in headers}
                path = target.split("?")[0]
                is_new = path == f"/apis/{NEW}" or path.startswith(f"/apis/{NEW}/")
                if is_new:
                    target, body = target.replace(NEW, OLD, 1), to_old(body)
                if is_new or path == "/apis":
                    headers["accept"] = "application/json"
                if "watch=" in target:
                    await self.stream(target, headers, is_new, writer)
                    break
                status, answered, body = await self.api.send(method, target, headers, body)
                if is_new:
                    body = to_new(body)
                elif path == "/apis" and status == 200:
                    body = with_v2(body)
                writer.write(printed(Answer(status, {"Content-Type": answered.get("content-type", "text/plain")}, body)))
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def stream(self, target, headers, is_new, writer):
        status, answered, upstream, upstream_writer = await self.api.watch(target, headers)
        try:
            kind = {"Content-Type": answered.get("content-type", "text/plain")}
            if status != 200:
                writer.write(printed(Answer(status, kind, await read_body(upstream, answered))))
                return
            writer.write(head("HTTP/1.1 200 -", {**kind, "Transfer-Encoding": "chunked"}))
            await writer.drain()
            while True:
                chunk = await read_chunk(upstream)  # the API server writes whole events
                chunk = to_new(chunk) if is_new else chunk
                writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
                await writer.drain()
                if not chunk:
                    return
        finally:
            upstream_writer.close()


async def main(kubeconfig, port):
    server = await asyncio.start_server(Server(Api(kubeconfig)).serve, "127.0.0.1", int(port))
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
