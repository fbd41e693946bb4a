"""Where data sets come from that no command fetches, and which files their folders hold."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Original:
    """Files of one publisher that a folder of the data directory holds."""

    address: str
    """Web address of the publisher."""
    files: Mapping[str, str]
    """Name in the folder -> name at the publisher, or of the archive that has the file. Words in
    braces stand for one file each. What ends in `.gz` here alone is gzipped by hand."""

    def lines(self) -> list[str]:
        """What each file is, in words."""
        return [f"{here}: {there} of {self.address}" for here, there in self.files.items()]


_LANGUAGE = "{english,german,finnish,turkish}"
_SIZE = "{low,medium,high}"
_TABLE = "{PATIENTS,ADMISSIONS,ICUSTAYS,PRESCRIPTIONS,DIAGNOSES_ICD,PROCEDURES_ICD}"

ORIGINALS: dict[str, tuple[Original, ...]] = {
    # published runs read a copy of the demo that lacks one of its 129 stays
    "mimic3_demo": (
        Original(
            address="https://physionet.org/content/mimiciii-demo/1.4/",
            files={f"{_TABLE}.csv.gz": f"{_TABLE}.csv"},
        ),
    ),
    "sigmorphon2017": (
        Original(
            address="https://github.com/sigmorphon/conll2017",
            files={
                f"{_LANGUAGE}-train-{_SIZE}.gz": f"all/task1/{_LANGUAGE}-train-{_SIZE}",
                f"{_LANGUAGE}-dev.gz": f"all/task1/{_LANGUAGE}-dev",
                f"{_LANGUAGE}-uncovered-test.gz": f"answers/task1/{_LANGUAGE}-uncovered-test",
            },
        ),
    ),
    "word_alignment": (
        Original(
            address="https://github.com/loganbrenningmeyer/multi-binaryalign",
            files={
                "encs-czenali/czenali.{train,valid}.jsonl.gz": (
                    "datasets/processed/{train,valid}/en-cz/czenali.jsonl"
                )
            },
        ),
        Original(
            address="https://github.com/neulab/awesome-align",
            files={
                "awesome-align/{enfr,jaen}.{src-tgt,gold}": "examples/{enfr,jaen}.{src-tgt,gold}"
            },
        ),
        Original(
            address="https://github.com/bicici/SMTData",
            files={"deen-bicici/{test.de,test.en,de-en.wa}": "German-English_WordAlignment.zip"},
        ),
    ),
}
"""By the name of the data set."""
