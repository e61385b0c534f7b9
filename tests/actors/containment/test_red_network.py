"""Attacks on the network from inside a sandbox, and the one way out that there may be."""

from __future__ import annotations

import json
import os
import socket
from functools import partial
from pathlib import Path

import trio

from affidavit.actors.containment.bubblewrap import Bubblewrap
from affidavit.actors.containment.port import Containment, ProxyRoute
from tests.actors.containment.kit import MIB, printed, run, run_python

REACH = """
import json, socket, sys
told = json.loads(sys.argv[1])
reached = []
def attempt(name, work):
    try: work(); reached.append(name)
    except OSError: pass
for host in told['hosts']:
    attempt(host, lambda: socket.create_connection((host, told['port']), 2))
def abstract():
    with socket.socket(socket.AF_UNIX) as made: made.connect('\\0' + told['abstract'])
attempt('abstract', abstract)
def udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made: made.sendto(b'x', ('192.0.2.1', 53))
attempt('udp', udp)
attempt('name', lambda: socket.getaddrinfo('example.org', 80))
for name in ('AF_PACKET', 'AF_VSOCK', 'AF_ALG', 'AF_BLUETOOTH', 'AF_CAN', 'AF_TIPC', 'AF_KEY', 'AF_RDS'):
    number = getattr(socket, name, None)
    if number is not None:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_RAW):
            attempt(name, lambda: socket.socket(number, kind).close())
attempt('raw', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close())
attempt('tipc pair', lambda: socket.socketpair(30, socket.SOCK_STREAM))
print(json.dumps([reached, [name for _, name in socket.if_nameindex()]]))
"""


async def test_nothing_is_reached_directly(kernel: Bubblewrap, work: Path) -> None:
    """No listener of this machine by any address, no abstract socket, no datagram, no name, no other family of sockets."""
    with socket.socket() as listener, socket.socket(socket.AF_UNIX) as local:
        listener.bind(("0.0.0.0", 0))
        listener.listen()
        listener.setblocking(False)
        name = f"affidavit-test-{os.getpid()}"
        local.bind("\0" + name)
        local.listen()
        hosts = ["127.0.0.1", "localhost", "::ffff:127.0.0.1", "0.0.0.0", socket.gethostname(), "10.0.0.1"]
        told = {"hosts": hosts, "port": listener.getsockname()[1], "abstract": name}
        outcome = await run_python(kernel, work, REACH, json.dumps(told))
        assert json.loads(printed(outcome)) == [[], ["lo"]]
        try:
            listener.accept()
        except BlockingIOError:
            return
        raise AssertionError("somebody has connected")


async def test_a_socket_in_the_workspace_is_the_operators_affair(kernel: Bubblewrap, work: Path) -> None:
    """A socket file that a program outside has put into the workspace can be connected to: this is said, and not held."""
    with socket.socket(socket.AF_UNIX) as local:
        local.bind(str(work / "door"))
        (work / "door").chmod(0o777)
        local.listen()
        script = "import socket; s = socket.socket(socket.AF_UNIX); s.connect('door'); print('open')"
        assert printed(await run_python(kernel, work, script)) == "open"


async def echo_proxy(stream: trio.SocketStream) -> None:
    """A stand-in for the proxy: says what it heard."""
    async with stream:
        heard = await stream.receive_some(65536)
        await stream.send_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nheard " + heard.split(b"\r\n")[0])


ASK = """
import os, socket, urllib.parse
proxy = urllib.parse.urlsplit(os.environ['https_proxy'])
with socket.create_connection((proxy.hostname, proxy.port)) as made:
    made.sendall(b'CONNECT example.org:443 HTTP/1.1\\r\\n\\r\\n')
    print(made.makefile('rb').read().split(b'\\r\\n\\r\\n')[1].decode(), proxy.password)
"""


async def test_the_proxy_is_the_one_way_out(level: Containment, work: Path) -> None:
    """Its variables lead to it and carry its credential."""
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, echo_proxy, 0, host="127.0.0.1"))
        port = listeners[0].socket.getsockname()[1]
        outcome = await run_python(level, work, ASK, proxy=ProxyRoute(port, "call:s3cret"))
        assert printed(outcome) == "heard CONNECT example.org:443 HTTP/1.1 s3cret"
        nursery.cancel_scope.cancel()


async def test_only_the_proxy_is_behind_it(kernel: Bubblewrap, work: Path) -> None:
    """With a proxy there is still nothing else: other ports of this machine are as far as before."""
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, echo_proxy, 0, host="127.0.0.1"))
        port = listeners[0].socket.getsockname()[1]
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            told = {"hosts": ["127.0.0.1"], "port": other.getsockname()[1], "abstract": "none"}
            outcome = await run_python(kernel, work, REACH, json.dumps(told), proxy=ProxyRoute(port))
        assert json.loads(printed(outcome)) == [[], ["lo"]]
        nursery.cancel_scope.cancel()


async def test_a_proxy_that_is_gone_fails_the_connection_alone(kernel: Bubblewrap, work: Path) -> None:
    """The command sees its connection end, and goes on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        script = (
            "import os, socket, urllib.parse\n"
            "proxy = urllib.parse.urlsplit(os.environ['http_proxy'])\n"
            "with socket.create_connection((proxy.hostname, proxy.port)) as made: print(made.recv(1))\n"
        )
        route = ProxyRoute(taken.getsockname()[1])
        assert printed(await run_python(kernel, work, script, proxy=route)) == "b''"


async def test_connections_are_carried_whole(kernel: Bubblewrap, work: Path) -> None:
    """Many at once, each with megabytes both ways and a half-closed end."""

    async def mirror(stream: trio.SocketStream) -> None:
        async with stream:
            async for chunk in stream:
                await stream.send_all(chunk)
            await stream.send_eof()

    script = (
        "import os, socket, threading, urllib.parse\n"
        "proxy = urllib.parse.urlsplit(os.environ['http_proxy'])\n"
        "def ask(number):\n"
        "    sent = bytes([number]) * (1 << 20)\n"
        "    with socket.create_connection((proxy.hostname, proxy.port)) as made:\n"
        "        def send(): made.sendall(sent); made.shutdown(socket.SHUT_WR)\n"
        "        threading.Thread(target=send).start()\n"
        "        print(made.makefile('rb').read() == sent)\n"
        "threads = [threading.Thread(target=ask, args=(n,)) for n in range(16)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
    )
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, mirror, 0, host="127.0.0.1"))
        route = ProxyRoute(listeners[0].socket.getsockname()[1])
        outcome = await run_python(kernel, work, script, proxy=route, memory_bytes=512 * MIB)
        assert printed(outcome).split() == ["True"] * 16
        nursery.cancel_scope.cancel()


async def test_without_a_proxy_no_variable_names_one(kernel: Bubblewrap, work: Path) -> None:
    """Nor is our own environment's taken."""
    assert "proxy" not in printed(await run(kernel, work, "env")).lower()
