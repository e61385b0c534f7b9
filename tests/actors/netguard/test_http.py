"""HTTP over the guard: redirects, connections that are kept open, TLS, and errors as httpx2's own."""

from __future__ import annotations

import datetime as dt
import ssl
from functools import partial
from pathlib import Path

import httpcore2
import httpx2
import pytest
import trio
import trio.testing
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from affidavit.actors.netguard.decision import Decision, EgressDenied
from affidavit.actors.netguard.http import GuardedBackend, guarded_client
from affidavit.actors.netguard.policy import EgressPolicy
from tests.actors.netguard.netkit import Book, hello, names, open_site, response


async def test_a_connection_is_kept_and_used_again_without_another_record() -> None:
    """Two requests to one place go over one connection and have one allow."""
    book = Book()
    async with open_site(book) as site, guarded_client(book.guard(f"127.0.0.1:{site.port}")) as client:
        for _ in range(2):
            assert (await client.get(f"http://127.0.0.1:{site.port}/")).text == "reached"
        assert len(site.heads) == 2
    assert book.accepted == [("127.0.0.1", site.port)]
    assert len(book.decisions) == 1


async def test_a_kept_connection_does_not_outlive_the_policy() -> None:
    """After the policy changed, a request over a kept connection sends nothing, is recorded, and the connection is closed."""
    book = Book()
    async with open_site(book) as site:
        guard = book.guard(f"127.0.0.1:{site.port}")
        async with guarded_client(guard) as client:
            await client.get(f"http://127.0.0.1:{site.port}/")
            guard.replace_policy(EgressPolicy())
            with pytest.raises(EgressDenied):
                await client.get(f"http://127.0.0.1:{site.port}/secret")
            assert [one.allowed for one in book.decisions] == [True, False]
            guard.replace_policy(EgressPolicy(allow=(f"127.0.0.1:{site.port}",)))
            assert (await client.get(f"http://127.0.0.1:{site.port}/")).text == "reached"
        assert not any("/secret" in head for head in site.heads)
    assert len(book.accepted) == 2
    assert book.unexplained == []


async def test_a_long_answer_does_not_outlive_the_policy_either() -> None:
    """A response that is still coming when the policy changes is broken off at the next read."""
    book = Book()
    start = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nfirst"
    async with open_site(book, lambda head: start) as site:
        guard = book.guard(f"127.0.0.1:{site.port}")
        async with (
            guarded_client(guard) as client,
            client.stream("GET", f"http://127.0.0.1:{site.port}/") as answer,
        ):
            guard.replace_policy(EgressPolicy())
            with pytest.raises(EgressDenied):
                await answer.aread()
    assert [one.allowed for one in book.decisions] == [True, False]


async def test_what_was_waited_for_while_the_policy_changed_is_not_handed_on() -> None:
    """A read that began under one policy and ended under another is refused."""
    book = Book()
    guard = book.guard("127.0.0.1")

    async def handle(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        # Now the client waits for the answer.
        await trio.testing.wait_all_tasks_blocked(0.01)
        guard.replace_policy(EgressPolicy())
        await stream.send_all(hello(""))

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, handle, 0, host="127.0.0.1"))
        port = listeners[0].socket.getsockname()[1]
        async with guarded_client(guard) as client:
            with pytest.raises(EgressDenied):
                await client.get(f"http://127.0.0.1:{port}/")
        nursery.cancel_scope.cancel()
    assert [one.allowed for one in book.decisions] == [True, False]


async def test_a_refusal_that_cannot_be_recorded_closes_the_kept_connection_too() -> None:
    """Even then nothing more goes over it."""

    def full(decision: Decision) -> None:
        raise RuntimeError("the log is gone")

    book = Book()
    async with open_site(book) as site:
        guard = book.guard(f"127.0.0.1:{site.port}")
        async with guarded_client(guard) as client:
            await client.get(f"http://127.0.0.1:{site.port}/")
            guard.replace_policy(EgressPolicy())
            book.before = full
            with pytest.raises(RuntimeError, match="the log is gone"):
                await client.get(f"http://127.0.0.1:{site.port}/secret")
        assert len(site.heads) == 1


async def test_a_refused_connection_is_closed_whoever_holds_it() -> None:
    """Even if the policy is changed back, what was refused once is not used again."""
    book = Book()
    async with open_site(book) as site:
        guard = book.guard("127.0.0.1")
        stream = await GuardedBackend(guard).connect_tcp("127.0.0.1", site.port)
        guard.replace_policy(EgressPolicy())
        with pytest.raises(EgressDenied):
            await stream.write(b"GET / HTTP/1.1\r\n\r\n")
        guard.replace_policy(EgressPolicy(allow=("127.0.0.1",)))
        with pytest.raises(httpcore2.WriteError):
            await stream.write(b"GET / HTTP/1.1\r\n\r\n")
        assert site.heads == []


async def test_no_password_of_the_users_files_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `.netrc` that knows the host is not read."""
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    book = Book()
    async with open_site(book) as site, guarded_client(book.guard("127.0.0.1")) as client:
        await client.get(f"http://127.0.0.1:{site.port}/")
        assert "authorization" not in site.heads[0].lower()


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://metadata.example/",
        "http://localhost:{port}/",
        "http://127.0.0.2:{port}/",
        "http://127.0.0.1:1/",
        "//127.0.0.2:{port}/",
        "http://127.0.0.1:{port}@127.0.0.2:{port}/",
        "https://127.0.0.2:{port}/",
    ],
)
async def test_a_redirect_is_decided_on_like_any_request(location: str) -> None:
    """A redirect to a place that is not allowed is refused on the record, and nobody there sees a connection."""
    book = Book()

    async with open_site(book) as site:
        to = location.format(port=site.port)
        site.reply = lambda head: response(b"", "302 Found", f"Location: {to}")
        guard = book.guard(f"127.0.0.1:{site.port}", "*.example")
        with names(metadata_example=["169.254.169.254"], localhost=["127.0.0.1"]):
            async with guarded_client(guard, follow_redirects=True) as client:
                with pytest.raises(EgressDenied):
                    await client.get(f"http://127.0.0.1:{site.port}/")
    assert book.accepted == [("127.0.0.1", site.port)]
    assert [one.allowed for one in book.decisions] == [True, False]


@pytest.mark.parametrize("scheme", ["ws", "wss", "ftp", "file"])
async def test_a_redirect_to_another_protocol_is_not_followed(scheme: str) -> None:
    """Nothing but http and https is spoken, though the library below knows more names for them."""
    book = Book()
    async with open_site(book) as site:
        to = f"{scheme}://127.0.0.1:{site.port}/"
        site.reply = lambda head: response(b"", "302 Found", f"Location: {to}")
        async with guarded_client(book.guard(f"127.0.0.1:{site.port}"), follow_redirects=True) as client:
            with pytest.raises(httpx2.UnsupportedProtocol):
                await client.get(f"http://127.0.0.1:{site.port}/")
    assert book.accepted == [("127.0.0.1", site.port)]


async def test_a_redirect_is_followed_where_it_is_allowed_and_not_for_ever() -> None:
    """Up to five are followed, each over a connection with an allow of its own."""
    book = Book()

    def onward(head: str) -> bytes:
        step = int(head.split(" ")[1].strip("/") or 0)
        return response(b"", "302 Found", f"Location: http://127.0.0.{step % 9 + 1}:{site.port}/{step + 1}")

    async with open_site(book) as site:
        site.reply = onward
        async with guarded_client(book.guard("127.0.0.0/8"), follow_redirects=True) as client:
            with pytest.raises(httpx2.TooManyRedirects):
                await client.get(f"http://127.0.0.1:{site.port}/0")
        assert len(site.heads) == 6
    assert book.unexplained == []


async def test_redirects_are_not_followed_unless_asked_for() -> None:
    """The client hands a redirect to its caller."""
    book = Book()
    moved = response(b"", "302 Found", "Location: /there")
    async with (
        open_site(book, lambda head: moved) as site,
        guarded_client(book.guard("127.0.0.0/8")) as client,
    ):
        assert (await client.get(f"http://127.0.0.1:{site.port}/")).status_code == 302


async def test_a_unix_socket_is_refused_on_the_record() -> None:
    """No policy names one."""
    book = Book()
    with pytest.raises(EgressDenied, match="no connection to unix:/run/x: a unix socket is never dialed"):
        await GuardedBackend(book.guard("public")).connect_unix_socket("/run/x")
    assert [(one.host, one.allowed) for one in book.decisions] == [("unix:/run/x", False)]


@pytest.mark.parametrize(
    ("answer", "error", "patience"),
    [
        (b"", httpx2.ReadTimeout, 0.05),
        (b"no http at all\r\n\r\n", httpx2.RemoteProtocolError, None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", httpx2.ReadTimeout, 0.05),
    ],
)
async def test_errors_are_those_of_httpx2(
    answer: bytes, error: type[Exception], patience: float | None
) -> None:
    """A caller that knows httpx2 need know nothing else."""
    book = Book()
    async with open_site(book, lambda head: answer) as site:
        limits = httpx2.Timeout(None, read=patience)
        async with guarded_client(book.guard("127.0.0.0/8"), timeout=limits) as client:
            with pytest.raises(error):
                await client.get(f"http://127.0.0.1:{site.port}/")


async def test_no_connection_is_a_connect_error() -> None:
    """Where nobody listens, and where nobody answers in time."""
    async with open_site(Book()) as site:
        port = site.port
    async with guarded_client(Book().guard("127.0.0.0/8")) as client:
        with pytest.raises(httpx2.ConnectError):
            await client.get(f"http://127.0.0.1:{port}/")


async def test_a_connect_timeout_is_one(autojump_clock: trio.testing.MockClock) -> None:
    """The time that a caller gives to connect covers the record as well."""

    class Stuck:
        async def record(self, decision: Decision) -> None:
            await trio.sleep_forever()

    guard = Book().guard("127.0.0.0/8")
    guard._recorder = Stuck()
    with pytest.raises(httpcore2.ConnectTimeout):
        await GuardedBackend(guard).connect_tcp("127.0.0.1", 1, timeout=3)


async def test_cancelling_a_request_closes_its_connection() -> None:
    """The server sees the end at once."""
    book = Book()
    scope = trio.CancelScope()
    ended = trio.Event()

    async def handle(stream: trio.SocketStream) -> None:
        while await stream.receive_some():
            scope.cancel(reason="the request has come")
        ended.set()

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, handle, 0, host="127.0.0.1"))
        port = listeners[0].socket.getsockname()[1]
        async with guarded_client(book.guard("127.0.0.0/8")) as client:
            with scope:
                await client.get(f"http://127.0.0.1:{port}/")
            await ended.wait()
        nursery.cancel_scope.cancel()


def _certified(folder: Path, name: str) -> ssl.SSLContext:
    """A server's context for one name, and its certificate in the folder as the only one to trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "certificate.pem").write_bytes(made.public_bytes(pem))
    (folder / "key.pem").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    return context


@pytest.mark.parametrize(("host", "verified"), [("model.test", True), ("other.test", False)])
async def test_tls_verifies_the_name_while_the_literal_is_dialed(
    host: str, verified: bool, tmp_path: Path
) -> None:
    """The server's certificate must be for the name that was asked for, wherever that name led."""
    book = Book()
    server = _certified(tmp_path, "model.test")

    async def handle(stream: trio.SSLStream[trio.SocketStream]) -> None:
        try:
            await stream.receive_some()
            await stream.send_all(hello(""))
        except trio.BrokenResourceError:
            return

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(
            partial(trio.serve_ssl_over_tcp, handle, 0, server, host="127.0.0.1", https_compatible=True)
        )
        port = listeners[0].transport_listener.socket.getsockname()[1]
        trust = ssl.create_default_context(cafile=tmp_path / "certificate.pem")
        guard = book.guard(endpoints=(f"{host}:{port}",))
        with names(model_test=["127.0.0.1"], other_test=["127.0.0.1"]):
            async with guarded_client(guard, ssl_context=trust) as client:
                if verified:
                    async with client.stream("GET", f"https://{host}:{port}/") as answer:
                        connection = answer.extensions["network_stream"]
                        assert connection.get_extra_info("server_addr") == ("127.0.0.1", port)
                        assert await answer.aread() == b"reached"
                else:
                    with pytest.raises(httpx2.ConnectError):
                        await client.get(f"https://{host}:{port}/")
        nursery.cancel_scope.cancel()
    assert [(one.host, one.name, one.allowed) for one in book.decisions] == [("127.0.0.1", host, True)]
