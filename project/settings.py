"""Settings of the demo project: all from the environment, or from a file ``.env`` beside manage.py.

The defaults are those of a safe trial run: no debug pages, loopback only, a secret key of its own, an
embedded server and SQLite in the data folder. ``.env.example`` explains every name.
"""

import os
from pathlib import Path

import environ

from project import datafolder

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()
environ.Env.read_env(BASE_DIR / ".env")  # what the environment says already, wins

DATA_DIR = Path(env.str("DATA_DIR", default=str(BASE_DIR / ".demo"))).absolute()

# ── who may talk to it ──

DEBUG = env.bool("DEBUG", default=False)
SECRET_KEY = env.str("SECRET_KEY", default="") or datafolder.secret_key(DATA_DIR)
SECRET_KEY_FALLBACKS = env.list("SECRET_KEY_FALLBACKS", default=[])
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

# ── what a deployment behind HTTPS switches on, all together ──

HTTPS = env.bool("HTTPS", default=False)
SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
# Probes and scrapers inside the deployment ask by HTTP.
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)$"]
SECURE_HSTS_SECONDS = env.int("HSTS_S", default=31_536_000) if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
# Only behind a proxy that sets this header itself; otherwise anybody could claim to come by HTTPS.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if env.bool("BEHIND_PROXY", default=False) else None
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True

# ── the queue ──

# Without REDIS_URL the server is the one that `manage.py demo` starts; its socket is open to this user alone.
EMBEDDED_SERVER = not env.str("REDIS_URL", default="")


def _lanes(name: str) -> dict[str, int | str]:
    """Return "high=6,low=1" as a dict; what is no number is left for priqueue to name and refuse."""
    pairs = [entry.partition("=") for entry in env.list(name)]
    return {lane.strip(): int(weight) if weight.isdecimal() else weight for lane, _, weight in pairs}


def _max_ready(name: str) -> object:
    """Return "10000" as a number and "low=10000" as a dict."""
    text = env.str(name)
    return _lanes(name) if "=" in text else int(text) if text.isdecimal() else text


def _rate_limit(name: str) -> object:
    """Return "100/s" as it is and "key:billing=500/s,*=100/s" as a dict; "none" lifts a limit there."""
    if "=" not in env.str(name):
        return env.str(name)
    pairs = [entry.partition("=") for entry in env.list(name)]
    return {caller.strip(): None if limit.strip() == "none" else limit.strip() for caller, _, limit in pairs}


_READERS = {
    "NAMESPACE": env.str,
    "LANES": _lanes,
    "MAX_READY": _max_ready,
    "RATE_LIMIT": _rate_limit,
    "CONCURRENCY": env.int,
    "MAX_ATTEMPTS": env.int,
    "TIMEOUT_S": env.float,
    "HEARTBEAT_S": env.float,
    "SHUTDOWN_GRACE_S": env.float,
    "METRICS_TOKEN": env.str,
}
PRIQUEUE = {
    "URL": f"unix://{datafolder.socket_path(DATA_DIR)}" if EMBEDDED_SERVER else env.str("REDIS_URL"),
    **{name: read(f"PRIQUEUE_{name}") for name, read in _READERS.items() if f"PRIQUEUE_{name}" in os.environ},
}

# ── the database ──

SQLITE = {
    "timeout": 20,
    # A transaction that begins as a reader cannot wait for the lock once it writes: begin as a writer.
    "transaction_mode": "IMMEDIATE",
    "init_command": "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL",
}
DATABASES = {"default": env.db("DATABASE_URL", default=f"sqlite:///{DATA_DIR / 'shop.sqlite3'}")}
DATABASES["default"]["CONN_MAX_AGE"] = env.int("CONN_MAX_AGE_S", default=60)
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["OPTIONS"] = SQLITE
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# ── the application ──

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "priqueue",
    "project.shop",
    "project.demo",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "project.policy.ContentSecurityPolicy",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "priqueue.middleware.PriqueueMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
ROOT_URLCONF = "project.urls"
WSGI_APPLICATION = "project.wsgi.application"
LOGIN_URL, LOGIN_REDIRECT_URL, LOGOUT_REDIRECT_URL = "login", "front", "front"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("MinimumLengthValidator", "CommonPasswordValidator", "NumericPasswordValidator")
]
LANGUAGE_CODE, TIME_ZONE, USE_TZ = "en", "UTC", True

# ── files ──

STATIC_URL = "static/"
STATIC_ROOT = env.str("STATIC_ROOT", default="") or None
# Collected files get a hash in their names and may be cached for ever; others are served from where they lie.
WHITENOISE_USE_FINDERS = STATIC_ROOT is None
_STATIC_STORAGE = (
    "whitenoise.storage.CompressedManifestStaticFilesStorage"
    if STATIC_ROOT
    else "django.contrib.staticfiles.storage.StaticFilesStorage"
)
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": _STATIC_STORAGE},
}

EMAIL_BACKEND = env.str("EMAIL_BACKEND", default="django.core.mail.backends.filebased.EmailBackend")
EMAIL_FILE_PATH = str(DATA_DIR / "mail")
DEFAULT_FROM_EMAIL = env.str("DEFAULT_FROM_EMAIL", default="shop@localhost")

# ── logs ──

LOG_LEVEL = env.str("LOG_LEVEL", default="INFO").upper()
# One JSON object a record for machines, or a line for people: what runs on its own server is a trial.
LOG_FORMAT = env.str("LOG_FORMAT", default="line" if DEBUG or EMBEDDED_SERVER else "json")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"job": {"()": "priqueue.logs.JobFilter"}},
    "formatters": {
        "line": {"()": "priqueue.logs.LineFormatter"},
        "json": {
            "()": "pythonjsonlogger.json.JsonFormatter",
            "fmt": ["levelname", "name", "message", "process"],
            "rename_fields": {"levelname": "level", "name": "logger"},
            "timestamp": True,
        },
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT, "filters": ["job"]}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {"priqueue": {"level": LOG_LEVEL}, "project": {"level": LOG_LEVEL}},
}
