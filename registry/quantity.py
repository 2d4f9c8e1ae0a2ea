"""Kubernetes quantities such as 500m, 1.5, 20Gi and 1e3, as exact numbers. Pure, and linear in the length of the text.

Users write quantities, and a kube-apiserver computes powers of ten as large as their exponents: the comparison of
`1e999999999` with another quantity occupies a core forever. Therefore a Tenant may declare only what `parse_limit`
accepts, and controllers write only what `canonical_limit` returns (ATTACK-16).
"""

from __future__ import annotations

import re
from fractions import Fraction

# resource.ParseQuantity also accepts texts without any digit as zero, such as `m`; we do not.
_QUANTITY = re.compile(
    r"(?P<sign>[+-]?)(?=\.?[0-9])(?P<whole>[0-9]*)(?:\.(?P<fraction>[0-9]*))?"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE](?P<exponent>[+-]?[0-9]+)|)",
    re.ASCII,
)
_BINARY = {suffix: 2 ** (10 * power) for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIXES = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_NANO_DIGITS = 9
_NANO = 10**_NANO_DIGITS
_MAX_DIGITS = 1000
# Further digits decide only whether a value is rounded: a multiple of 1n divided by 1Ei has no more digits than these.
_MAX_FRACTION_DIGITS = 80

LARGEST = 2**63 - 1
MAX_LENGTH = 128
MAX_EXPONENT = 18
FORMAT_ERROR = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def parse(quantity: str | float) -> Fraction:
    """The exact value as Kubernetes stores it: rounded away from zero to whole 1n, and with a binary suffix limited to
    2^63-1. Values beyond 10^1000 count as that.

    Raises ValueError with the message of Kubernetes.
    """
    # JSON numbers of more than 64 bits are decoded as floating-point numbers
    if isinstance(quantity, (int, float)):
        return Fraction(quantity)
    match = _QUANTITY.fullmatch(quantity)
    if match is None:
        raise ValueError(FORMAT_ERROR)
    suffix = match["suffix"]
    value = _decimal(match["whole"], match["fraction"] or "", _exponent(suffix, match["exponent"]))
    value = Fraction(-(-value * _BINARY.get(suffix, 1) * _NANO // 1), _NANO)
    if suffix in _BINARY:
        value = min(value, Fraction(LARGEST))
    return -value if match["sign"] == "-" else value


def _exponent(suffix: str, digits: str | None) -> int:
    """The power of ten that the suffix stands for, limited to one that no text of 1 TB could compensate."""
    if digits is None:
        return _DECIMAL.get(suffix, 0)
    significant = digits.lstrip("+-").lstrip("0")
    size = int(significant or "0") if len(significant) < 13 else 10**12
    return -size if digits.startswith("-") else size


def _decimal(whole: str, fraction: str, exponent: int) -> Fraction:
    """`whole.fraction` times 10^exponent, with a 1 in place of everything beyond _MAX_FRACTION_DIGITS."""
    digits, power = (whole + fraction).lstrip("0"), exponent - len(fraction)
    if not digits:
        return Fraction(0)
    if len(digits) + power > _MAX_DIGITS:
        return Fraction(10**_MAX_DIGITS)
    if (excess := -_MAX_FRACTION_DIGITS - power) > 0:
        kept, rest = digits[:-excess], digits[-excess:]
        digits, power = kept + ("1" if rest.strip("0") else "0"), -_MAX_FRACTION_DIGITS - 1
    return int(digits) * Fraction(10) ** power


def parse_bounded(quantity: str | float) -> Fraction:
    """The value of a quantity that Kubernetes handles in the time that its few digits take. Raises ValueError with the
    reason why it is none: its form, its length, its exponent or its size."""
    if isinstance(quantity, str):
        if len(quantity) > MAX_LENGTH:
            raise ValueError(f"must be no more than {MAX_LENGTH} characters")
        match = _QUANTITY.fullmatch(quantity)
        if match is not None and abs(_exponent("", match["exponent"])) > MAX_EXPONENT:
            raise ValueError(f"must have an exponent between -{MAX_EXPONENT} and {MAX_EXPONENT}")
    value = parse(quantity)
    if abs(value) > LARGEST:
        raise ValueError(f"must be no more than {LARGEST} (2^63-1)")
    return value


def round_up(value: Fraction) -> Fraction:
    """The value rounded to thousandths, away from zero, as kube-apiserver stores it in a list of resources: a
    ResourceQuota, a LimitRange, the resources of a container (its SetDefaults_ResourceList)."""
    thousandths = -(-abs(value) * 1000 // 1)
    return Fraction(thousandths if value >= 0 else -thousandths, 1000)


def parse_limit(quantity: str | float) -> Fraction:
    """The value of a limit as kube-apiserver stores it, which is bounded, not negative, and in whole thousandths.
    Raises ValueError with the reason why it is none."""
    value = round_up(parse_bounded(quantity))
    if value < 0:
        raise ValueError("must be greater than or equal to 0")
    return value


def canonical(quantity: str | int) -> str:
    """The quantity as Kubernetes stores it in a list of resources: `1024Mi` is 1Gi, `0.5` is 500m, `1000m` is 1, and
    `500u` is 1m.

    Raises ValueError as `parse_bounded` does.
    """
    return _canonical_text(quantity, round_up(parse_bounded(quantity)))


def canonical_limit(quantity: str | int) -> str:
    """The canonical form of a limit. Raises ValueError as `parse_limit` does."""
    return _canonical_text(quantity, parse_limit(quantity))


def text_like(quantity: str | int, value: Fraction) -> str:
    """A value in the form of another quantity: with a binary suffix, a decimal one or an exponent, where it has one."""
    return _canonical_text(quantity, value)


def _canonical_text(quantity: str | int, value: Fraction) -> str:
    match = _QUANTITY.fullmatch(str(quantity))
    # a binary suffix is used only for whole numbers from 1Ki on
    if match is not None and match["suffix"] in _BINARY and abs(value) >= 1024 and value.denominator == 1:
        return _with_binary_suffix(value.numerator)
    mantissa, exponent = _mantissa_and_exponent(value)
    if match is not None and match["exponent"] is not None:
        return f"{mantissa}e{exponent}" if exponent else str(mantissa)
    return f"{mantissa}{_DECIMAL_SUFFIXES[exponent]}"


def _with_binary_suffix(value: int) -> str:
    suffix = ""
    for each in _BINARY:
        if value % 1024:
            break
        value, suffix = value // 1024, each
    return f"{value}{suffix}"


def _mantissa_and_exponent(value: Fraction) -> tuple[int, int]:
    """The value, in whole 1n, as a whole number times the largest power of a thousand."""
    mantissa, exponent = int(value * _NANO), -_NANO_DIGITS
    while mantissa and mantissa % 1000 == 0:
        mantissa, exponent = mantissa // 1000, exponent + 3
    return mantissa, exponent if mantissa else 0


def to_text(value: Fraction) -> str:
    """The value as a decimal quantity: a whole number, or an exact multiple of m, u or n."""
    for suffix, factor in (("", 1), ("m", 10**3), ("u", 10**6), ("n", _NANO)):
        scaled = value * factor
        if scaled.denominator == 1:
            return f"{scaled.numerator}{suffix}"
    return f"{-(-value * _NANO // 1)}n"
