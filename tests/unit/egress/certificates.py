"""Certificates of an authority that only these tests trust."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NOW = datetime.now(UTC)
YEAR = timedelta(days=365)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


class Authority:
    """An authority that signs what the tests want, good or bad."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        public = self._key.public_key()
        usage = dict.fromkeys(
            (
                *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
                *("encipher_only", "decipher_only"),
            ),
            False,
        )
        self._certificate = (
            x509.CertificateBuilder()
            .subject_name(_named("Authority of the tests"))
            .issuer_name(_named("Authority of the tests"))
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW - YEAR)
            .not_valid_after(NOW + YEAR)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.KeyUsage(**usage, key_cert_sign=True, crl_sign=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def pem(self) -> str:
        """The authority's own certificate."""
        return self._certificate.public_bytes(Encoding.PEM).decode()

    def server(
        self, *hosts: str, common_name: str = "nobody", is_expired: bool = False, is_self_signed: bool = False
    ) -> ssl.SSLContext:
        """The context of a server whose certificate is for these hosts."""
        key = ec.generate_private_key(ec.SECP256R1())
        signer, issuer = (key, _named(common_name)) if is_self_signed else (self._key, self._certificate.subject)
        builder = (
            x509.CertificateBuilder()
            .subject_name(_named(common_name))
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW - YEAR)
            .not_valid_after(NOW - timedelta(days=1) if is_expired else NOW + YEAR)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        )
        if hosts:
            names = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(signer, hashes.SHA256())
        file = self._folder / f"{certificate.serial_number}.pem"
        file.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            + certificate.public_bytes(Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context
