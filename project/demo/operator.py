"""The demo's operator account: may do everything in the admin, with a password that is new at each start."""

from django.contrib.auth import get_user_model
from django.utils.crypto import get_random_string

NAME = "demo-operator"


def renew() -> str:
    """Make the account, or give it a new password; return the password, which is kept nowhere."""
    password = get_random_string(16)
    operator, _ = get_user_model().objects.get_or_create(username=NAME)
    operator.is_staff = operator.is_superuser = operator.is_active = True
    operator.set_password(password)
    operator.save()
    return password
