"""Case 35: TLS options are dropped when a URL is given, or the connection is silently insecure."""

import socket
import ssl
import threading
from contextlib import closing, suppress

import pytest
import trustme
from django.test import override_settings

from priqueue.checks import check_configuration
from priqueue.conf import Settings
from priqueue.coordinator import Coordinator
from priqueue.coordinator.connection import check_server, connect, derive
from priqueue.exceptions import ConfigurationError
from priqueue.jobs import Job

authority = trustme.CA()


def pump(source, sink):
    """Pass on what comes from one side until it ends, then end the other."""
    with suppress(OSError):
        while received := source.recv(65536):
            sink.sendall(received)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)


def terminate_tls(listener, context, port):
    """Accept TLS connections and pass them on in plain text to the server at ``port``."""

    def serve(accepted):
        with (
            suppress(OSError),
            closing(context.wrap_socket(accepted, server_side=True)) as near,
            socket.create_connection(("127.0.0.1", port)) as far,
        ):
            answers = threading.Thread(target=pump, args=(far, near), daemon=True)
            answers.start()
            pump(near, far)
            answers.join()

    with suppress(OSError):
        while True:
            accepted, _ = listener.accept()
            threading.Thread(target=serve, args=(accepted,), daemon=True).start()


@pytest.fixture(scope="module")
def make_port(server):
    """Make TLS ports in front of the real server, with a certificate for the given names."""
    listeners = []

    def make(*names, clients_need_certificate=False):
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert(*names).configure_cert(context)
        authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED if clients_need_certificate else ssl.CERT_NONE
        listeners.append(socket.create_server(("127.0.0.1", 0)))
        threading.Thread(target=terminate_tls, args=(listeners[-1], context, server.port), daemon=True).start()
        return listeners[-1].getsockname()[1]

    yield make
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@pytest.fixture(scope="module")
def port(make_port):
    return make_port("127.0.0.1")


@pytest.fixture(scope="module")
def ca_certs(tmp_path_factory):
    path = tmp_path_factory.mktemp("tls") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


def settings_of(url, **options):
    return Settings.parse({"URL": url, "NAMESPACE": "case35", "TLS": options})


def faults_of(settings):
    with connect(settings) as client:
        return check_server(client, settings).faults


def warnings_of(url, **options):
    with override_settings(PRIQUEUE={"URL": url, "TLS": options}):
        return [finding.id for finding in check_configuration()]


def test_without_options_a_certificate_of_an_unknown_authority_is_refused(port):
    (fault,) = faults_of(settings_of(f"rediss://127.0.0.1:{port}/0"))

    assert fault.startswith("TLS failed: ")
    assert "CERTIFICATE_VERIFY_FAILED" in fault
    assert fault.endswith("; see TLS in the settings")


def test_the_authority_given_beside_the_url_is_used(port, ca_certs):
    assert faults_of(settings_of(f"rediss://127.0.0.1:{port}/0", ca_certs=ca_certs)) == ()


def test_the_authority_given_in_the_url_is_used(port, ca_certs):
    assert faults_of(settings_of(f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={ca_certs}")) == ()


def test_a_verified_connection_is_not_warned_of(port, ca_certs):
    assert warnings_of(f"rediss://127.0.0.1:{port}/0", ca_certs=ca_certs) == []


def test_verification_is_off_only_when_asked_for_and_then_warned_of(port):
    url = f"rediss://127.0.0.1:{port}/0"

    assert faults_of(settings_of(url, cert_reqs="none")) == ()
    assert warnings_of(url, cert_reqs="none") == ["priqueue.W002"]


def test_verification_can_be_switched_off_in_the_url_and_is_warned_of(port):
    url = f"rediss://127.0.0.1:{port}/0?ssl_cert_reqs=none"

    assert faults_of(settings_of(url)) == ()
    assert warnings_of(url) == ["priqueue.W002"]


def test_a_certificate_for_another_name_is_refused_unless_asked_otherwise(make_port, ca_certs):
    url = f"rediss://127.0.0.1:{make_port('elsewhere.example')}/0"

    assert "CERTIFICATE_VERIFY_FAILED" in faults_of(settings_of(url, ca_certs=ca_certs))[0]
    assert faults_of(settings_of(url, ca_certs=ca_certs, check_hostname=False)) == ()


def test_a_client_certificate_is_presented(make_port, ca_certs, tmp_path):
    mine = authority.issue_cert("client.example")
    certfile, keyfile = tmp_path / "cert.pem", tmp_path / "key.pem"
    mine.cert_chain_pems[0].write_to_path(str(certfile))
    mine.private_key_pem.write_to_path(str(keyfile))
    url = f"rediss://127.0.0.1:{make_port('127.0.0.1', clients_need_certificate=True)}/0"

    assert faults_of(settings_of(url, ca_certs=ca_certs, certfile=str(certfile), keyfile=str(keyfile))) == ()


def test_the_coordinators_own_clients_keep_the_options(port, ca_certs):
    settings = settings_of(f"rediss://127.0.0.1:{port}/0", ca_certs=ca_certs)
    coordinator = Coordinator(connect(settings), settings)
    job = Job(name="tests.shop.jobs.note", payload={})
    coordinator.enqueue(job)

    assert coordinator.client.hexists(coordinator.keys.jobs, job.id)


def test_a_derived_client_verifies_as_the_given_one_does(port):
    with (
        connect(settings_of(f"rediss://127.0.0.1:{port}/0")) as given,
        derive(given, socket_timeout_s=1) as derived,
    ):
        report = check_server(derived, settings_of(f"rediss://127.0.0.1:{port}/0"))

    assert "CERTIFICATE_VERIFY_FAILED" in report.faults[0]


def test_options_on_a_url_without_tls_are_refused_instead_of_ignored():
    with pytest.raises(ConfigurationError, match="use rediss://"):
        settings_of("redis://127.0.0.1:1/0", cert_reqs="none")
