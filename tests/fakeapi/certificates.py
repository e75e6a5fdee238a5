"""A certificate authority for one test session, and certificates of it."""

import atexit
import datetime as dt
import functools
import ipaddress
import pathlib
import shutil
import tempfile

import attrs
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@attrs.frozen
class Pair:
    """PEM text of a certificate and its key."""

    certificate: str
    key: str


@attrs.frozen
class Authority:
    """Signs certificates; the server's is valid for localhost, 127.0.0.1 and ::1."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def pair(self, name: str) -> Pair:
        """A certificate for server and client use whose common name is `name`."""
        key = ec.generate_private_key(ec.SECP256R1())
        addresses = [ipaddress.ip_address(a) for a in ("127.0.0.1", "::1")]
        alternatives = [x509.DNSName("localhost"), *map(x509.IPAddress, addresses)]
        certificate = (
            _builder(name, self.certificate.subject, key)
            .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return Pair(
            certificate.public_bytes(serialization.Encoding.PEM).decode(),
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ).decode(),
        )


@functools.cache
def authority() -> Authority:
    """The authority of this process."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("fakeapi")
    certificate = (
        _builder("fakeapi", name, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate, key)


@functools.cache
def server_files() -> tuple[str, str]:
    """Paths of the authority's certificate and of the server's chain with its key."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fakeapi-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    pair = authority().pair("localhost")
    (folder / "ca.crt").write_text(authority().pem)
    (folder / "server.pem").write_text(pair.certificate + pair.key)
    return str(folder / "ca.crt"), str(folder / "server.pem")


def _builder(
    subject: str, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=2))
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
