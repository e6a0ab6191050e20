"""Who acts inside a request, found out only when something asks."""

import asyncio
from types import SimpleNamespace

import pytest
from asgiref.sync import iscoroutinefunction, sync_to_async
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.auth.models import AnonymousUser
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpResponse
from django.test import RequestFactory

from priqueue import callers
from priqueue.callers import Acting, acting
from priqueue.middleware import PriqueueMiddleware


class Untouchable:
    """A user that must not be looked at."""

    def __getattribute__(self, name):
        pytest.fail(f"the user was asked for {name}")


def user(pk):
    return SimpleNamespace(pk=pk, is_authenticated=True)


def request_of(user=None, **headers):
    request = RequestFactory().get("/", headers=headers)
    if user is not None:
        request.user = user
    return request


def acting_in(request):
    """Return who acts in a view that is given the request."""
    seen = []

    def view(request):
        seen.append(acting())
        return HttpResponse()

    PriqueueMiddleware(view)(request)
    return seen[0]


def acting_in_async(request, ask):
    async def view(request):
        return HttpResponse(repr(await ask()))

    middleware = PriqueueMiddleware(view)
    assert iscoroutinefunction(middleware)
    return asyncio.run(middleware(request)).content.decode()


@pytest.mark.parametrize(
    ("pk", "caller"),
    [
        (42, "user:42"),
        ("0b5e-ü", "user:0b5e-%C3%BC"),
        ('a "b"\\\n', "user:a%20%22b%22%5C%0A"),
        ("a@b.c", "user:a@b.c"),
    ],
)
def test_the_user_of_the_request_acts_under_any_primary_key(pk, caller):
    assert acting_in(request_of(user(pk), x_request_id="r1")) == Acting(caller, "", "r1")


@pytest.mark.parametrize("nobody", [AnonymousUser(), None])
def test_without_a_user_the_system_acts(nobody):
    assert acting_in(request_of(nobody, x_request_id="r1")) == Acting("system", "", "r1")


@pytest.mark.parametrize("header", ["", "two words", 'a"b', "a" * 201, "a\\b", "a\nb"])
def test_a_request_id_that_is_no_word_is_replaced_by_a_fresh_one(header):
    request = request_of()
    request.META["HTTP_X_REQUEST_ID"] = header

    assert len(acting_in(request).correlation_id) == 36


def test_each_request_without_an_id_gets_its_own_for_its_whole_length():
    seen = []

    def view(request):
        seen.append([acting().correlation_id, acting().correlation_id])
        return HttpResponse()

    middleware = PriqueueMiddleware(view)
    middleware(request_of())
    middleware(request_of())

    assert [len(set(ids)) for ids in seen] == [1, 1]
    assert seen[0] != seen[1]


def test_a_request_that_asks_nothing_touches_no_user():
    request = request_of(Untouchable())

    assert PriqueueMiddleware(lambda request: HttpResponse("done"))(request).content == b"done"


def test_a_block_inside_the_request_keeps_the_request_id_and_touches_no_user():
    def view(request):
        with callers.acting_as("command:alice"):
            return HttpResponse(repr(acting()))

    response = PriqueueMiddleware(view)(request_of(Untouchable(), x_request_id="r1"))

    assert response.content.decode() == repr(Acting("command:alice", "", "r1"))


def through_the_stack(view):
    """Return the response and whether a session was loaded, with Django's own middlewares around."""
    request = request_of()
    stack = SessionMiddleware(AuthenticationMiddleware(PriqueueMiddleware(view)))
    return stack(request), request.session.accessed


def test_a_view_that_enqueues_nothing_loads_no_session_and_varies_by_no_cookie():
    response, accessed = through_the_stack(lambda request: HttpResponse())

    assert (accessed, response.has_header("Vary")) == (False, False)


def test_a_view_that_asks_who_acts_varies_by_the_cookie():
    response, accessed = through_the_stack(lambda request: HttpResponse(acting().caller))

    assert (response.content, accessed, response["Vary"]) == (b"system", True, "Cookie")


def test_after_a_login_in_the_view_the_new_user_acts():
    def view(request):
        before = acting().caller
        request.user = user(7)
        return HttpResponse(f"{before} {acting().caller}")

    assert PriqueueMiddleware(view)(request_of(AnonymousUser())).content == b"system user:7"


def test_after_the_request_nobody_acts_any_more_even_if_the_view_raised():
    def view(request):
        raise KeyError

    with pytest.raises(KeyError):
        PriqueueMiddleware(view)(request_of(user(42)))

    assert acting() == Acting()


def test_in_an_async_view_the_caller_is_known_in_threads_too():
    async def ask():
        return await sync_to_async(acting)()

    assert acting_in_async(request_of(user(42), x_request_id="r1"), ask) == repr(Acting("user:42", "", "r1"))


def test_in_an_async_view_that_asks_nothing_no_user_is_touched():
    async def ask():
        return "nothing"

    assert acting_in_async(request_of(Untouchable()), ask) == "'nothing'"


def test_requests_served_at_once_do_not_see_each_others_caller():
    async def view(request):
        await asyncio.sleep(0)
        return HttpResponse(acting().caller)

    async def both():
        middleware = PriqueueMiddleware(view)
        return await asyncio.gather(*(middleware(request_of(user(pk))) for pk in (1, 2)))

    assert [response.content for response in asyncio.run(both())] == [b"user:1", b"user:2"]


def test_a_sync_view_makes_a_sync_middleware():
    assert not iscoroutinefunction(PriqueueMiddleware(lambda request: HttpResponse()))
