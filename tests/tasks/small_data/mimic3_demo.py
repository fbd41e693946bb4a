"""Some invented stays in the place of the demo of MIMIC-III."""

import gzip
import random
from pathlib import Path

STAY = "{p},{h},2100-01-01 10:00:00,2100-01-09 10:00:00,EMERGENCY,CLINIC,FEVER,{died}"
HEADERS = {
    "PATIENTS": "subject_id,dob",
    "ADMISSIONS": "subject_id,hadm_id,admittime,dischtime,admission_type,admission_location,"
    "diagnosis,hospital_expire_flag",
    "ICUSTAYS": "hadm_id,first_careunit,intime",
    "PRESCRIPTIONS": "row_id,hadm_id,startdate,drug",
    "DIAGNOSES_ICD": "hadm_id,seq_num,icd9_code",
    "PROCEDURES_ICD": "hadm_id,seq_num,icd9_code",
}


def write(directory: Path, words: random.Random) -> None:
    folder = directory / "mimic3_demo"
    folder.mkdir(parents=True)
    lines = {name: [header] for name, header in HEADERS.items()}
    for p in range(40):
        lines["PATIENTS"].append(f"{p},2040-05-01 00:00:00")
        lines["ADMISSIONS"].append(STAY.format(p=p, h=100 + p, died=p % 2))
        lines["ICUSTAYS"].append(f"{100 + p},MICU,2100-01-01 12:00:00")
        for at, drug in enumerate(words.sample(("aspirin", "insulin", "heparin", "senna"), 2)):
            lines["PRESCRIPTIONS"].append(f"{at},{100 + p},2100-01-02 00:00:00,{drug}")
        for name in ("DIAGNOSES_ICD", "PROCEDURES_ICD"):
            lines[name].append(f"{100 + p},1,4019")
    for name, some in lines.items():
        text = "\n".join(some) + "\n"
        (folder / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
