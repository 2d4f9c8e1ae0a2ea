"""Facts on the page whose texts anybody may have written, and routes of the version that a cluster serves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from tests.e2e.support.browser.chromium import Chromium

_SHOW = """
    const [found] = arguments, done = arguments[arguments.length - 1];
    import("/static/explain-panel.js").then(({answer}) => {
        const body = document.createElement("div");
        body.append(...answer(found, ""));
        done([[...body.querySelectorAll(".subjects > li")].map(each => each.textContent), body.textContent]);
    });
"""
_EVENTS = """
    const [events] = arguments, done = arguments[arguments.length - 1];
    const actions = {why() {}, pageOf: () => 0, turn() {}};
    import("/static/sections.js").then(({eventsOf}) => done(eventsOf(events, actions).textContent));
"""
_REFUSED = """
    const [status, warning] = arguments, done = arguments[arguments.length - 1], send = window.fetch;
    const answers = [Response.json(status, {status: 422}), Response.json({}, {headers: {Warning: warning}})];
    window.fetch = async () => answers.shift();
    import("/static/api.js").then(async ({request}) => {
        const error = await request("POST", "/apis").catch(each => each);
        const {warnings} = await request("POST", "/apis");
        window.fetch = send;
        const {placeErrors} = await import("/static/form-values.js");
        const {fields, rest} = placeErrors(error.causes, error.message, []);
        done([error.message, ...fields.values(), ...rest, ...warnings]);
    });
"""
_WHERE = """
    const [tenant] = arguments, done = arguments[arguments.length - 1];
    import("/static/sections.js").then(({domainOf}) => done(domainOf(tenant, {why() {}}).textContent));
"""
_WHY = """
    const [row] = arguments, done = arguments[arguments.length - 1];
    import("/static/sections.js").then(({quotaOf}) => {
        const found = quotaOf([row], {why: (about, field, title) => done([button.ariaLabel, title]), pageOf: () => 0});
        const button = found.querySelector("button.why");
        button.click();
    });
"""
_SERVED = """
    const [served] = arguments, done = arguments[arguments.length - 1], send = window.fetch;
    const group = "gateway.networking.k8s.io", versions = Object.keys(served);
    window.fetch = async (url) => {
        const version = versions.find(each => url === `/apis/${group}/${each}`);
        if (url !== "/apis" && !version) return Response.json({code: 404}, {status: 404});
        return Response.json(version ? {resources: served[version].map(name => ({name}))}
            : {groups: versions.length ? [{name: group, versions: versions.map(version => ({version}))}] : []});
    };
    import("/static/details.js").then(({servedRoutes}) => servedRoutes()).then(found => {
        window.fetch = send;
        done(Object.fromEntries(found));
    });
"""


def _answer(**fact: object) -> Mapping[str, object]:
    binding = {"kind": "RoleBinding", "namespace": "tenant-root", "name": "view", "field": "subjects"}
    common = {"object": binding, "status": "True", "rule": "A rule.", "link": "visibility.md"}
    return {"verdict": "True", "summary": "s", "facts": [{**common, **fact}]}


def test_the_name_of_a_user_is_one_subject(page: Chromium) -> None:
    """RBAC takes any text for the name of a user."""
    name = "eve, Group system:masters"
    subjects = [{"kind": "User", "name": name}, {"kind": "Group", "name": "\u202ereversed\n"}]
    shown, text = page.driver.execute_async_script(_SHOW, _answer(value="joined", subjects=subjects))
    assert shown == [f"User {name}", "Group \\u{202e}reversed\\u{a}"]
    assert "joined" not in text


@pytest.mark.parametrize(
    ("about", "summary", "shown"),
    [
        ("who-can-see", "2 subjects may see the tenant", "2 subjects may see the tenant"),
        ("user/eve", "eve may not get tenant tenant-root/alice", "eve may not get tenant tenant-root/alice"),
        ("host/shop.example.org", "no Gateway serves the tenant", "Not servedno Gateway serves the tenant"),
    ],
)
def test_an_answer_begins_with_what_was_asked(page: Chromium, about: str, summary: str, shown: str) -> None:
    """Yes is no answer to "Who can see it?"."""
    answer = {**_answer(), "about": about, "summary": summary, "verdict": "False"}
    _, text = page.driver.execute_async_script(_SHOW, answer)
    assert text.startswith(f"{shown}✓")


def test_very_many_subjects_are_counted(page: Chromium) -> None:
    subjects = [{"kind": "User", "name": f"u{number}"} for number in range(1_000)]
    shown, _ = page.driver.execute_async_script(_SHOW, _answer(subjects=subjects))
    assert len(shown) == 31
    assert shown[-1].startswith("and 970 more;")


def test_no_text_of_an_object_hides_or_turns_another(page: Chromium) -> None:
    fact = _answer(value="v\u202e", message="m\u200b\u2066", remedy="r\x1b[2J", reason="R\u202e")
    _, text = page.driver.execute_async_script(_SHOW, {**fact, "summary": "s\u202e"})
    assert all(each.isprintable() for each in text), text


def test_no_error_and_no_warning_of_the_api_hides_or_turns_another(page: Chromium) -> None:
    """Policies and webhooks may quote any field of an object, also one that another has written."""
    host = {"field": "spec.host", "message": "Forbidden: h\u202e"}
    status = {"message": "a\nb\u061c", "details": {"causes": [host, {"field": "spec.x\u2066", "message": "c\u200b"}]}}
    texts = page.driver.execute_async_script(_REFUSED, status, '299 - "w\x9b"')
    assert texts == ["a b\\u{61c}", "H\\u{202e}", "spec.x\\u{2066}: C\\u{200b}", "w\\u{9b}"]


def test_a_refusal_that_begins_with_a_field_names_it_as_it_is(page: Chromium) -> None:
    """As the host policy of Cozystack does; other refusals begin with a capital letter beside the field."""
    for message, shown in (("tenant.spec.host can only be set", "tenant.spec.host can only"), ("too long", "Too long")):
        cause = {"message": message, "field": "spec.host"}
        status = {"message": message, "code": 422, "details": {"causes": [cause]}}
        _, *texts = page.driver.execute_async_script(_REFUSED, status, '299 - "w"')
        assert texts[0].startswith(shown)


def test_no_value_of_a_tenant_hides_or_turns_another(page: Chromium) -> None:
    """A HelmRelease that nobody admitted has any text for its values."""
    tenant = {"spec": {"host": "a\u202e", "schedulingClass": "s\u2066"}, "status": {"host": {"value": "a\u202e"}}}
    assert page.driver.execute_async_script(_WHERE, tenant).isprintable()


def test_no_question_about_a_value_hides_or_turns_another(page: Chromium) -> None:
    """The button for it has a name, and its answer a title."""
    row = {"resource": "r\u202e", "left": "1", "declared": "1", "allocated": "0", "allocatedShare": 0, "usedShare": 0}
    texts = page.driver.execute_async_script(_WHY, row)
    assert texts == ["Why? 1 r\\u{202e} left", "1 r\\u{202e} left"]


def test_a_value_does_not_touch_the_name_of_its_field(page: Chromium) -> None:
    """Screen readers, and those who copy it, have the text without its style."""
    binding = {"kind": "Tenant", "namespace": "tenant-root", "name": "a", "field": "spec.host"}
    _, text = page.driver.execute_async_script(_SHOW, _answer(object=binding, value="a.example.org"))
    assert "spec.host a.example.org" in text


def test_the_message_of_an_event_is_one_line_that_hides_nothing(page: Chromium) -> None:
    event = {
        "type": "Normal",
        "reason": "R\u202e",
        "message": "a\nb\u2066c",
        "time": "2026-01-01T00:00:00Z",
        "count": 1,
    }
    text = page.driver.execute_async_script(_EVENTS, [event])
    assert text.isprintable()
    assert "a b\\u{2066}c" in text


@pytest.mark.parametrize(
    ("served", "expected"),
    [
        (
            {"v1": ["httproutes", "grpcroutes", "tlsroutes"], "v1alpha2": ["tlsroutes"]},
            {"httproutes": "v1", "grpcroutes": "v1", "tlsroutes": "v1"},
        ),
        (
            {"v1": ["httproutes"], "v1alpha3": ["tlsroutes"], "v1alpha2": ["tlsroutes"]},
            {"httproutes": "v1", "tlsroutes": "v1alpha3"},
        ),
        ({"v1": ["httproutes"], "v1alpha2": ["tlsroutes"]}, {"httproutes": "v1", "tlsroutes": "v1alpha2"}),
        ({}, {}),
    ],
    ids=["v1", "v1alpha3", "v1alpha2", "no Gateway API"],
)
def test_routes_are_listed_in_the_version_that_is_served(
    page: Chromium, served: Mapping[str, Sequence[str]], expected: Mapping[str, str]
) -> None:
    assert page.driver.execute_async_script(_SERVED, served) == expected
