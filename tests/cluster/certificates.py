"""A certificate authority for one control plane: short-lived, on disk, no passwords."""

import datetime as dt
import ipaddress
from pathlib import Path

import attrs
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = dt.timedelta(days=2)


@attrs.frozen
class Pair:
    """A certificate and its private key, both PEM files."""

    certificate: Path
    key: Path


@attrs.frozen
class Authority:
    """Signs the certificates of one control plane into `folder`."""

    folder: Path
    pair: Pair
    _certificate: x509.Certificate
    _key: ec.EllipticCurvePrivateKey

    @classmethod
    def create(cls, folder: Path) -> "Authority":
        """Make a new authority and write it to `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("nfd-cluster-ca")
        certificate = (
            _builder(name, name, key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(folder, _write(folder, "ca", certificate, key), certificate, key)

    def issue(self, file: str, user: str, *groups: str) -> Pair:
        """Sign a certificate for `user` in `groups`, valid as loopback server too."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [
            x509.DNSName("localhost"),
            x509.DNSName("kubernetes.default.svc"),
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
            x509.IPAddress(ipaddress.ip_address("::1")),
        ]
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        certificate = (
            _builder(_name(user, *groups), self._certificate.subject, key.public_key())
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return _write(self.folder, file, certificate, key)


def write_service_account_key(folder: Path) -> Pair:
    """Make the key that signs service-account tokens; `certificate` is its public half."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = folder / "service-account.pub"
    public.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM,
            serialization.PublicFormat.SubjectPublicKeyInfo,
        )
    )
    return Pair(public, _write_key(folder / "service-account.key", key))


def _name(user: str, *groups: str) -> x509.Name:
    organizations = [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups
    ]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + LIFETIME)
    )


def _write(
    folder: Path,
    file: str,
    certificate: x509.Certificate,
    key: ec.EllipticCurvePrivateKey,
) -> Pair:
    path = folder / f"{file}.crt"
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return Pair(path, _write_key(folder / f"{file}.key", key))


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> Path:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            # The API server's reader of service-account keys takes SEC1, not all
            # of PKCS 8.
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    return path
