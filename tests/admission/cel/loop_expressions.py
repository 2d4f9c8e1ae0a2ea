"""Expressions with loops, and the values that they read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

VALUES: dict[str, Any] = {
    "object": {
        "names": ["a", "b", "c", "d", "e"],
        "numbers": [5, 3, 4, 1, 2],
        "pairs": [{"name": "a", "items": [1, 2]}, {"name": "b", "items": []}, {"name": "c", "items": [3]}],
        "map": {"a": 1, "b": 2, "c": 3},
        "none": [None, 1, None],
        "empty": [],
        "mixed": ["1", "x", "3"],
        "text": "a.b.c",
        "number": 7,
    },
    "oldObject": None,
}
# a comment ends with its line, and white space between two words is kept
_LAID_OUT = """object.names // all of them
    .all( name ,
        name in object.names  // each
        && name!='x')"""
EXPRESSIONS = [
    "object.names.all(n, n != 'c')",
    "object.names.all(n, n != 'x')",
    "object.names.exists(n, n == 'e')",
    "object.names.exists(n, n == 'x')",
    "object.names.exists_one(n, n == 'c')",
    "object.names.exists_one(n, n > 'b')",
    "object.names.map(n, n + '!')",
    "object.names.map(n, n > 'b', n + '!')",
    "object.names.filter(n, n > 'b')",
    "object.names.filter(n, n > 'x')",
    "object.map.all(k, k != 'c')",
    "object.map.exists(k, object.map[k] == 3)",
    "object.map.filter(k, k > 'a').size()",
    "object.map.all(k, v, k != 'x' && v < 4)",
    "object.map.exists(k, v, v == 3)",
    "object.map.existsOne(k, v, v > 1)",
    "object.map.transformList(k, v, v > 1, v * 2).sum()",
    "object.names.all(i, n, object.names[i] == n)",
    "object.names.exists(i, n, i == 3 && n == 'd')",
    "object.names.existsOne(i, n, i > 3)",
    "object.names.transformList(i, n, n + string(i))",
    "object.names.transformList(i, n, i % 2 == 0, n)",
    "object.numbers.sortBy(n, n)",
    "object.numbers.sortBy(n, -n)",
    "object.pairs.sortBy(p, -size(p.items)).map(p, p.name)",
    "object.empty.all(n, false) && !object.empty.exists(n, true) && object.empty.map(n, n) == []",
    "object.none.all(n, n == null || n == 1)",
    "object.none.map(n, n)",
    "object.pairs.all(p, p.items.all(i, i > 0))",
    "object.pairs.map(p, p.items.map(i, p.name + string(i)))",
    "object.pairs.map(p, p.items.filter(i, i > 1)).flatten()",
    "object.pairs.filter(p, p.items.exists(i, object.numbers.exists(n, n == i && p.name != 'a'))).map(p, p.name)",
    "object.names.map(n, object.names.map(m, n + m).filter(nm, nm != 'aa')).map(l, l.size())",
    "object.numbers.map(n, object.numbers.filter(n, n > 3).size() + n)",
    "object.names.all(i, n, object.numbers.all(j, m, i != j || m == object.numbers[i]))",
    "object.map.all(k, v, object.map.exists(l, w, k == l && v == w))",
    "object.pairs.map(p, has(p.items) && !has(p.none))",
    "object.text.split('.').all(s, s.matches('^[a-c]$'))",
    "lists.range(4).map(n, n * n)",
    "'a' in object.names.filter(n, n < 'c') ? [1].map(n, n) : [2].map(n, n)",
    "{'x': object.names.map(n, n)}.x.exists(n, n == 'b')",
    "[1, 2].map(n, n)[1] + (object.numbers).filter(n, n > 4)[0]",
    "object.numbers.filter(n, n in [3, 4]).size()",
    "!object.names.all(n, n == 'a')",
    "object.?names.orValue([]).all(n, n != 'x')",
    "object.names.map(n, {'name': n, 'list': [n]})",
    "object.names.map(n, format.dns1123Label().validate(n).hasValue())",
    "object.names.all(n, n.find('[a-e]') == n)",
    "object.numbers.map(n, quantity(string(n) + 'k')).all(q, q.isLessThan(quantity('6k')))",
    _LAID_OUT,
    # errors
    "object.mixed.all(s, int(s) > 0)",
    "object.mixed.all(s, int(s) > 1)",
    "object.mixed.exists(s, int(s) == 3)",
    "object.mixed.exists(s, int(s) == 4)",
    "object.mixed.exists_one(s, int(s) == 1)",
    "object.mixed.map(s, int(s))",
    "object.mixed.filter(s, int(s) > 0)",
    "object.mixed.all(i, s, int(s) > 0)",
    "object.mixed.sortBy(s, int(s))",
    "object.mixed.all(s, int(s) > 0) || true",
    "object.names.all(n, n.field == 1)",
    "object.names.all(n, object.nope)",
    "object.pairs.all(p, p.items.all(i, i / 0 == 1))",
    "object.pairs.exists(p, p.items[1] == 2)",
    "object.nope.all(n, true)",
    "object.number.all(n, true)",
    "object.text.map(n, n)",
    "oldObject.metadata.all(n, true)",
    "oldObject.all(n, true)",
    "object.names.map(n, [][0])",
]

SHAPES: Mapping[str, tuple[int, bool]] = {
    "object.name == 'map(x, y)'": (0, False),
    "object.names.all(n, n != 'c')": (1, False),
    "object.names.map(n, n).all(n, n != 'c')": (1, True),
    "object.names.all(n, object.names.all(m, n == m))": (2, False),
    "object.names.all(n, n in object.names.filter(m, m > n))": (2, True),
    "object.names.all(n, m, n == m) && object.names.sortBy(n, n) == []": (1, True),
}
"""The depth of the loops of expressions, and whether they build lists."""
