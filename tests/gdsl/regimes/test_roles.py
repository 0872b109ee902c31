"""Roles are found by data flow: renaming everything in a text changes nothing."""

import pytest

import gdsl
from gdsl.ir.text import expression_text
from gdsl.regimes.roles import kernel_roles

RULES = {
    "gated delta": (
        "r[K, V](a[K], b[K], c[V], d, e, state S[K, V]) -> o[V]",
        ["S = d * S", "x = sum[K](b * S)", "S = S + b * (e * (c - x))", "o = sum[K](a * S)"],
        {"query": "a", "key": "b", "value": "c", "decay": "d", "beta": "e"},
    ),
    "pre-read": (
        "r[K, V](a[K], b[K], c[V], d, e, state S[K, V]) -> o[V]",
        ["x = sum[K](b * S)", "S = d * S + b * (e * (c - x))", "o = sum[K](a * S)"],
        {"query": "a", "key": "b", "value": "c", "decay": "d", "beta": "e"},
    ),
    "no erase": (
        "r[K, V](a[K], b[K], c[V], d, e, state S[K, V]) -> o[V]",
        ["S = d * S + b * (e * c)", "o = sum[K](a * S)"],
        {"query": "a", "key": "b", "value": "c", "decay": "d", "beta": "e"},
    ),
    "no decay, no beta": (
        "r[K, V](a[K], b[K], c[V], state S[K, V]) -> o[V]",
        ["S = S + b * (c - sum[K](b * S))", "o = sum[K](a * S)"],
        {"query": "a", "key": "b", "value": "c", "decay": "", "beta": ""},
    ),
}
ARGS = {
    "a": "input a: f32[B, K]",
    "b": "input b: f32[B, K]",
    "c": "input c: f32[B, V]",
    "d": "input d: f32[B]",
    "e": "input e: f32[B]",
}


def _kernel(head: str, body: list[str]) -> gdsl.Definition:
    params = head[head.index("(") + 1 : head.index(", state")].split(", ")
    names = [param.partition("[")[0] for param in params]
    lines = [f"rule {head}:", *(f"    {line}" for line in body)]
    lines += ["kernel k:", "    axes B, K, V", *(f"    {ARGS[name]}" for name in names)]
    lines += ["    state T: f32[B, K, V] = s0", f"    y, T = step r({', '.join(names)}, T)"]
    lines += ["    output out: f32[B, V] = y", "    output s1: f32[B, K, V] = T", ""]
    return gdsl.loads("\n".join(lines))


@pytest.mark.parametrize("name", RULES)
def test_roles_of_rules(name: str) -> None:
    head, body, wanted = RULES[name]
    (roles,) = kernel_roles(_kernel(head, body).kernel)
    found = {role: ",".join(map(expression_text, e)) for role, e in roles.expressions.items()}
    assert found == wanted
    assert (roles.key_axis, roles.value_axis) == ("K", "V")


@pytest.mark.parametrize("name", ["gdn_tkg", "gdn_cte", "kda_tkg", "rwkv7_fwd", "mamba2_fwd"])
def test_every_library_recurrence_has_keys_queries_and_values(name: str) -> None:
    for roles in kernel_roles(gdsl.load(name).kernel):
        for role in ("key", "query", "value"):
            assert roles.expressions[role], role


def test_window_rules_have_no_roles() -> None:
    assert kernel_roles(gdsl.load("gdn_conv1d_decode").kernel) == ()


def test_sub_steps_are_looked_into() -> None:
    (roles,) = kernel_roles(gdsl.load("delta_product_fwd").kernel)
    assert [expression_text(e) for e in roles.expressions["beta"]] == ["beta"]
    assert roles.expressions["key"]
