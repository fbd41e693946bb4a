"""What `certificates.json` says of a variant; written by the conformance suite."""

from collections.abc import Callable, Container, Iterable
from typing import NotRequired, TypedDict

from results.json_values import JsonObject, as_list, as_object, as_text

BUILT = "runs_somewhere"
"""The check that a variant can be built. It never skips, but where the code that was asked for is
no code of the variant: then nothing was checked, and the reason stands here."""


class CertificateEntry(TypedDict):
    """The checks of a variant, by what became of them."""

    passed: list[str]
    skipped: dict[str, str]
    """Each with the reason."""
    failed: dict[str, str]
    """Each with what does not hold."""
    expected: list[str]
    """Checks that had to pass; a skip among them is not green."""
    told: dict[str, str]
    """What a check that passed has to say."""
    code: NotRequired[dict[str, str]]
    """Hash of the code that was checked, by place; empty where it is not known. Files of earlier
    versions have none."""


def certificate_entry(data: JsonObject) -> CertificateEntry:
    """Read one entry; a part that is missing is empty."""
    entry = CertificateEntry(
        passed=[as_text(check) for check in as_list(data.get("passed"))],
        skipped=_sentences(data, "skipped"),
        failed=_sentences(data, "failed"),
        expected=[as_text(check) for check in as_list(data.get("expected"))],
        told=_sentences(data, "told"),
    )
    if code := _sentences(data, "code"):
        entry["code"] = code
    return entry


def certificate_entries(data: JsonObject) -> dict[str, CertificateEntry]:
    """Read `certificates.json`: entries by variant."""
    return {variant: certificate_entry(as_object(entry)) for variant, entry in data.items()}


def is_red(entry: CertificateEntry) -> bool:
    """Whether a variant must not be ranked: a check failed, or one that had to pass did not run."""
    unknown = set(entry["expected"]) - set(entry["passed"])
    return bool(entry["failed"] or unknown)


def refused_code(entry: CertificateEntry) -> str:
    """Why a variant has no such code as was asked for, so that nothing was checked; else nothing.

    That is a refusal: neither red nor green.
    """
    return entry["skipped"].get(BUILT, "")


def verdict(entry: CertificateEntry) -> str:
    """`red`, `refused` without such code, `skipped` where no check had a meaning, or `green`."""
    if is_red(entry):
        return "red"
    if refused_code(entry):
        return "refused"
    return "green" if entry["passed"] else "skipped"


def with_checks(entry: CertificateEntry, more: CertificateEntry) -> CertificateEntry:
    """A certificate with the checks of another one, which replace all of the same place.

    The name of a check that holds on one device and in one format alone ends in both:
    `answers_on_cuda_bfloat16`. Other code and a timed shape are places, too: `oracle_on_eager`,
    `timed_shape_on_cuda_bfloat16_at_causal_B2_H2_L256_E32`. So a failure stays until the same code
    passes at the same shape.
    """
    kept = _without(entry, _places(more))
    both: CertificateEntry = {
        "passed": kept["passed"] + more["passed"],
        "skipped": kept["skipped"] | more["skipped"],
        "failed": kept["failed"] | more["failed"],
        "expected": kept["expected"] + more["expected"],
        "told": kept["told"] | more["told"],
    }
    if code := kept.get("code", {}) | more.get("code", {}):
        both["code"] = code
    return both


def of_impl(entry: CertificateEntry, impl: str) -> CertificateEntry:
    """A certificate of the suite, whose checks are named after the code that they were asked of.

    So that they neither hide nor replace those of other code. The usual code has no name.

    Args:
        entry: The certificate.
        impl: Name of the code.
    """
    if impl == "auto":
        return entry

    def named(check: str) -> str:
        return f"{check}_on_{impl}"

    def renamed(sentences: dict[str, str]) -> dict[str, str]:
        return {named(check): why for check, why in sentences.items()}

    both: CertificateEntry = {
        "passed": [*map(named, entry["passed"])],
        "skipped": renamed(entry["skipped"]),
        "failed": renamed(entry["failed"]),
        "expected": [*map(named, entry["expected"])],
        "told": renamed(entry["told"]),
    }
    if "code" in entry:
        both["code"] = {at or impl: of for at, of in entry["code"].items()}
    return both


def with_sentences(entry: CertificateEntry, change: Callable[[str], str]) -> CertificateEntry:
    """A certificate that says everything in other words.

    Args:
        entry: The certificate.
        change: Gives the new words of a sentence.
    """

    def changed(sentences: dict[str, str]) -> dict[str, str]:
        return {check: change(said) for check, said in sentences.items()}

    told = changed(entry["told"])
    skipped, failed = changed(entry["skipped"]), changed(entry["failed"])
    return {**entry, "skipped": skipped, "failed": failed, "told": told}


def of_code(entry: CertificateEntry, code: str) -> CertificateEntry:
    """A certificate that says of which code it is.

    Args:
        entry: The certificate.
        code: Hash of the code that was checked; empty where it is not known.
    """
    return {**entry, "code": dict.fromkeys(sorted(_places(entry)), code)}


def without_other_code(entry: CertificateEntry, code: str) -> CertificateEntry:
    """A certificate without the checks of other code.

    Those of earlier versions stay, because they may be of this code.
    """
    told = entry.get("code", {})
    return _without(entry, {place for place, of in told.items() if of != code})


def _without(entry: CertificateEntry, places: Container[str]) -> CertificateEntry:
    """A certificate without the checks of some places."""

    def stay(checks: Iterable[str]) -> list[str]:
        return [check for check in checks if _place(check) not in places]

    def kept(sentences: dict[str, str]) -> dict[str, str]:
        return {check: sentences[check] for check in stay(sentences)}

    left: CertificateEntry = {
        "passed": stay(entry["passed"]),
        "skipped": kept(entry["skipped"]),
        "failed": kept(entry["failed"]),
        "expected": stay(entry["expected"]),
        "told": kept(entry["told"]),
    }
    if "code" in entry:
        left["code"] = {at: of for at, of in entry["code"].items() if at not in places}
    return left


def _places(entry: CertificateEntry) -> set[str]:
    """Devices, formats, codes and shapes that a certificate is about."""
    return {_place(check) for check in (*entry["passed"], *entry["skipped"], *entry["failed"])}


def _place(check: str) -> str:
    """Where a check holds; empty for the usual code in float64 on the processor."""
    return check.partition("_on_")[2]


def _sentences(data: JsonObject, key: str) -> dict[str, str]:
    return {check: as_text(why) for check, why in as_object(data.get(key)).items()}
