"""What servers of tests say, down to the byte; and certificates that they show."""

import asyncio
import datetime
import ssl
from itertools import count
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.outbound.conftest import Talk

GOOD = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 8\r\n\r\n{"a": 1}'


async def heard(reader: asyncio.StreamReader) -> bytes:
    """The head of one request."""
    return await reader.readuntil(b"\r\n\r\n")


def saying(answer: bytes) -> Talk:
    """Answers each request of a connection so."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await heard(reader)
            writer.write(answer)
            await writer.drain()

    return talk


def endless(head: bytes, piece: bytes, pause: float = 0.0) -> Talk:
    """Answers with a head and then the same piece for ever."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await heard(reader)
        writer.write(head)
        for _ in count():
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)

    return talk


def tunnel(asked: list[bytes], to_port: int) -> Talk:
    """A proxy that notes what it is asked for, and leads every tunnel to one port."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await heard(reader))
        if not asked[-1].startswith(b"CONNECT"):
            writer.write(GOOD)
            await writer.drain()
            return
        there, back = await asyncio.open_connection("127.0.0.1", to_port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            await asyncio.gather(_pipe(reader, back), _pipe(there, writer))
        finally:
            back.close()

    return talk


async def _pipe(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(65536):
        sink.write(data)
        await sink.drain()
    sink.close()


class Authority:
    """A private certificate authority; `file` holds its certificate in PEM form."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Tests")])
        certificate = self._certificate(self._name, self._key, authority=True)
        self.file = folder / "authority.pem"
        self.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def server(self, host: str) -> ssl.SSLContext:
        """What a server of this name needs to be believed."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
        certificate = self._certificate(name, key, host=host)
        file = self._folder / f"{host}.pem"
        file.write_bytes(
            certificate.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    def _certificate(
        self,
        name: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        *,
        host: str = "authority",
        authority: bool = False,
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        day = datetime.timedelta(days=1)
        public = self._key.public_key()
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(public)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - day)
            .not_valid_after(now + day)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
            .add_extension(identifier, critical=False)
        )
        if authority:
            subject = x509.SubjectKeyIdentifier.from_public_key(public)
            builder = builder.add_extension(subject, critical=False).add_extension(
                x509.KeyUsage(
                    digital_signature=True,
                    key_cert_sign=True,
                    crl_sign=True,
                    content_commitment=False,
                    key_encipherment=False,
                    data_encipherment=False,
                    key_agreement=False,
                    encipher_only=False,
                    decipher_only=False,
                ),
                critical=True,
            )
        return builder.sign(self._key, hashes.SHA256())
