"""HTTP/1.1 on asyncio streams, as much of it as an API server and the operator speak to each other, and a client of an API server."""
import asyncio
import base64
import json
import ssl
import subprocess
import tempfile
import time
from collections import namedtuple

LIMIT_BYTES = 1 << 22  # of a line: a watch event is one
IDLE_S = 30  # for which an idle connection may be used again: API servers close it after 90
Answer = namedtuple("Answer", "status headers body")


async def read_head(reader):
    """The words of the first line, and {header in lower case: value}; None at the end of the connection."""
    line = await reader.readline()
    if not line:
        return None
    headers = {}
    while (header := (await reader.readline()).decode().strip()):
        name, _, value = header.partition(":")
        headers[name.lower()] = value.strip()
    return line.decode().split(maxsplit=2), headers


async def read_chunk(reader):
    """b"": it was the last."""
    length = int((await reader.readline()).strip() or b"0", 16)
    chunk = await reader.readexactly(length)
    await reader.readline()
    return chunk


async def read_body(reader, headers):
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while (chunk := await read_chunk(reader)):
            body += chunk
        return body
    return await reader.readexactly(int(headers.get("content-length", 0)))


def head(first, headers):
    return "".join([first, "\r\n", *(f"{name}: {value}\r\n" for name, value in headers.items()), "\r\n"]).encode()


def printed(answer):
    """The bytes of an answer."""
    return head(f"HTTP/1.1 {answer.status} -", {**answer.headers, "Content-Length": len(answer.body)}) + answer.body


class Api:
    """A client of the API server that a kubeconfig's current context names, by certificates."""

    def __init__(self, kubeconfig):
        command = ["kubectl", "--kubeconfig", kubeconfig, "config", "view", "--raw", "--flatten", "--minify", "-o", "json"]
        config = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.host, port = cluster["server"].removeprefix("https://").rsplit(":", 1)
        self.port = int(port)
        self.tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile() as pem:
            for part in "client-certificate-data", "client-key-data":
                pem.write(base64.b64decode(user[part]))
            pem.flush()
            self.tls.load_cert_chain(pem.name)
        self.idle = []  # [(since when, connection)]

    async def begin(self, connection, method, target, headers, body):
        """Sends a request; returns the status and the headers of its answer."""
        reader, writer = connection
        writer.write(head(f"{method} {target} HTTP/1.1", {"Host": self.host, **headers, "Content-Length": len(body)}) + body)
        await writer.drain()
        first, answer_headers = await read_head(reader) or (None, None)
        if not first:
            raise ConnectionError("the API server has closed the connection")
        return int(first[1]), answer_headers

    async def open(self):
        return await asyncio.open_connection(self.host, self.port, ssl=self.tls, limit=LIMIT_BYTES)

    async def connection(self):
        """One that is idle and still good, or a new one."""
        while self.idle:
            since, connection = self.idle.pop()
            if time.monotonic() - since < IDLE_S and not connection[0].at_eof():
                return connection
            connection[1].close()
        return await self.open()

    async def send(self, method, target, headers=None, body=b""):
        connection = await self.connection()
        try:
            status, answer_headers = await self.begin(connection, method, target, headers or {}, body)
            answer = Answer(status, answer_headers, await read_body(connection[0], answer_headers))
        except BaseException:
            connection[1].close()
            raise
        self.idle.append((time.monotonic(), connection))
        return answer

    async def ask(self, method, target, value=None, content_type="application/json"):
        """The answer's status, and its object."""
        body = b"" if value is None else json.dumps(value).encode()
        answer = await self.send(method, target, {"Content-Type": content_type}, body)
        return answer.status, json.loads(answer.body or b"null")

    async def watch(self, target, headers=None):
        """The status, the headers, a reader of chunks and the connection, which the caller closes."""
        connection = await self.open()
        status, answer_headers = await self.begin(connection, "GET", target, headers or {}, b"")
        return status, answer_headers, *connection


class Lines:
    """The lines of a chunked body; None at its end."""

    def __init__(self, reader):
        self.reader, self.rest = reader, b""

    async def next(self):
        while b"\n" not in self.rest:
            chunk = await read_chunk(self.reader)
            if not chunk:
                return None
            self.rest += chunk
        line, self.rest = self.rest.split(b"\n", 1)
        return line
