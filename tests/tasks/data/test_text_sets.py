"""SST-2, AG News, IMDB and the demo of MIMIC-III: what is read, and how damage is told."""

import gzip
import json

import pytest

from bench.api.errors import DataDamaged, DataUnavailable
from tasks.data.ag_news import load_ag_news
from tasks.data.imdb import load_imdb, sentences
from tasks.data.mimic3_demo import load_mimic3_demo
from tasks.data.sst2_sentences import load_sst2_sentences
from tasks.data.tables import held_out


@pytest.fixture
def put(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()))
        return tmp_path

    return write


def sst2(put, **changed):
    for stem in ("train", "dev", "test"):
        folder = put(f"sst2_sentences/{stem}.tsv.gz", changed.get(stem, "fine film\t1\ndull\t0\n"))
    return folder


def test_sentences_come_with_numbers_for_labels(put):
    table = load_sst2_sentences(sst2(put))
    assert table.parts["test"] == ({"text": "fine film", "label": 1}, {"text": "dull", "label": 0})
    assert set(table.parts) == {"train", "validation", "test"}
    assert table.note.startswith("sst2_sentences from the directory: dev.tsv.gz ")


def test_an_unknown_label_names_file_and_line(put):
    with pytest.raises(DataDamaged, match=r"dev\.tsv\.gz: line 2 has label '2', none of .* copy"):
        load_sst2_sentences(sst2(put, dev="fine\t1\ndull\t2\n"))
    with pytest.raises(DataDamaged, match=r"test\.tsv\.gz: line 1 has 1 fields"):
        load_sst2_sentences(sst2(put, test="fine\n"))
    with pytest.raises(DataDamaged, match="the file is empty"):
        load_sst2_sentences(sst2(put, train=""))


def test_nothing_there_says_what_to_do(tmp_path):
    with pytest.raises(DataUnavailable, match="run `python -m bench data fetch sst2_sentences`"):
        load_sst2_sentences()
    for load in (load_ag_news, load_imdb, load_mimic3_demo):
        with pytest.raises(DataUnavailable, match="name a data directory"):
            load(tmp_path)


def test_news_lose_their_codes_and_a_part_is_held_out(put):
    lines = "".join(f"It #39;s item {at}\\now\tSci/Tech\n" for at in range(20))
    put("ag_news/dev.tsv.gz", lines)
    table = load_ag_news(put("ag_news/test.tsv.gz", "Goal\tSports\n"))
    assert {part: len(rows) for part, rows in table.parts.items()} == {
        "train": 18,
        "validation": 2,
        "test": 1,
    }
    assert table.parts["train"][0] == {"text": "It's item 0 now", "label": 3}


def news(put, *texts: str) -> list[str]:
    put("ag_news/dev.tsv.gz", "Goal\tSports\n" * 10)
    folder = put("ag_news/test.tsv.gz", "".join(f"{text}\tWorld\n" for text in texts))
    return [" ".join(row["text"].split()) for row in load_ag_news(folder).parts["test"]]


def test_news_lose_the_quotes_of_csv_and_keep_their_own(put):
    texts = ('"He said ""stop"" twice."', '"Stop," she said.', '"Stop" or "go"', '""', "no")
    assert news(put, *texts) == ['He said "stop" twice.', *texts[1:3], "", "no"]


def test_news_lose_what_is_left_of_html_and_keep_symbols_of_shares(put):
    texts = {
        "General Motors Corp. &lt;GM.N&gt; and Ford &lt;F.N&gt; fell": (
            "General Motors Corp. <GM.N> and Ford <F.N> fell"
        ),
        '"Chips of &lt;A HREF=""http://a.b/c?d=e""&gt;TXN.N&lt;/A&gt; sell&lt;br /&gt;well"': (
            "Chips of TXN.N sell well"
        ),
        "quot;We quit, quot; said AT amp;T  #151; and left  #x2014; today  hellip;.": (
            '"We quit," said AT&T — and left — today ….'
        ),
        "A amp;amp;lt; B &amp;lt; C &amp; D #39;s champ; 5 &lt; 6 &gt; 2": (
            "A< B < C & D's champ; 5 < 6 > 2"
        ),
    }
    assert dict(zip(texts, news(put, *texts), strict=True)) == texts


def test_reviews_with_labels_in_turn_are_held_out_with_both(put):
    rows = [{"id": str(at), "text": f"Film {at}.", "label": at % 2} for at in range(200)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    put("imdb/train.jsonl.gz", lines)
    table = load_imdb(put("imdb/test.jsonl.gz", lines))
    assert {row["label"] for row in table.parts["validation"]} == {0, 1}
    assert len(table.parts["validation"]) == 20
    with pytest.raises(DataDamaged, match=r"test\.jsonl\.gz: line 1 has label 2, none of"):
        load_imdb(put("imdb/test.jsonl.gz", '{"text": "x", "label": 2}\n'))
    with pytest.raises(DataDamaged, match=r"line 1 has list in 'label' where int is expected"):
        load_imdb(put("imdb/test.jsonl.gz", '{"text": "x", "label": [1]}\n'))
    with pytest.raises(DataDamaged, match=r"line 1 has null in 'text' where str is expected"):
        load_imdb(put("imdb/test.jsonl.gz", '{"text": null, "label": 1}\n'))


def test_held_out_rows_are_the_same_each_time_and_no_others():
    rows = tuple({"n": n} for n in range(50))
    train, held = held_out(rows, 5)
    assert len(held) == 10
    assert held == held_out(rows, 5)[1]
    assert sorted(row["n"] for row in (*train, *held)) == list(range(50))


def test_breaks_and_brackets_end_sentences():
    assert sentences('So "good!" I said.<br />And 7.5 of 10...') == [
        'So "good!"',
        "I said.",
        "And 7.5 of 10...",
    ]


MIMIC = {
    "PATIENTS": "subject_id,dob,dod\n1,2000-01-01 00:00:00,x\n2,1750-01-01 00:00:00,x\n",
    "ADMISSIONS": (
        "subject_id,hadm_id,admittime,dischtime,deathtime,admission_type,admission_location,"
        "discharge_location,diagnosis,hospital_expire_flag\n"
        "1,11,2050-03-01 08:00:00,2050-03-09 08:00:00,,ELECTIVE,CLINIC,HOME,BACK PAIN,0\n"
        '1,12,2051-03-01 08:00:00,2051-03-09 08:00:00,gone,EMERGENCY,ROOM,DEAD,"SEPSIS, DEATH",1\n'
        "2,21,2050-03-01 08:00:00,2050-03-02 08:00:00,gone,EMERGENCY,ROOM,DEAD,SHOCK,1\n"
    ),
    "ICUSTAYS": "hadm_id,first_careunit,intime\n12,MICU,2051-03-01 09:00:00\n",
    "PRESCRIPTIONS": (
        "row_id,hadm_id,startdate,drug\n"
        '1,12,2051-03-02 00:00:00,"Salt, Fine"\n'
        "2,12,2051-03-03 00:00:00,Morphine\n"
        "3,12,2051-03-01 00:00:00,Aspirin\n"
        "4,12,,Late\n"
    ),
    "DIAGNOSES_ICD": "hadm_id,seq_num,icd9_code\n11,1,72402\n12,1,4275\n",
    "PROCEDURES_ICD": "hadm_id,seq_num,icd9_code\n11,1,8151\n12,1,9960\n",
}


def mimic(put, **changed):
    for name, text in {**MIMIC, **changed}.items():
        folder = put(f"mimic3_demo/{name}.csv.gz", text)
    return folder


def test_a_stay_is_what_was_known_in_its_first_two_days(put):
    first, second = load_mimic3_demo(mimic(put)).parts["stays"]
    assert (first["patient"], first["label"], second["label"]) == ("1", 0, 1)
    assert first["events"] == (
        "age:50",
        "type:elective",
        "from:clinic",
        "for:back",
        "for:pain",
    ), "codes of the stay itself are assigned after it"
    assert second["events"] == (
        "dx:724",
        "px:815",
        "age:50",
        "type:emergency",
        "from:room",
        "for:sepsis",
        "unit:micu",
        "rx:aspirin",
        "rx:salt, fine",
    ), "codes of earlier stays, and no drug of the third day"


def test_damaged_stays_name_their_line(put):
    broken = MIMIC["ADMISSIONS"].replace("2051-03-01 08", "soon")
    with pytest.raises(DataDamaged, match=r"ADMISSIONS\.csv\.gz: line 3 has a time that is none"):
        load_mimic3_demo(mimic(put, ADMISSIONS=broken))
    with pytest.raises(DataDamaged, match=r"PATIENTS\.csv\.gz: line 1 names no column 'dob'"):
        load_mimic3_demo(mimic(put, PATIENTS="subject_id\n1\n"))
    with pytest.raises(DataDamaged, match=r"ICUSTAYS\.csv\.gz: line 2 has 2 fields where 3"):
        load_mimic3_demo(mimic(put, ICUSTAYS="hadm_id,first_careunit,intime\n12,MICU\n"))
    with pytest.raises(DataDamaged, match="line 2 is of a patient whom PATIENTS lacks"):
        load_mimic3_demo(mimic(put, PATIENTS="subject_id,dob\n2,1750-01-01\n"))


def test_the_real_sets_are_whole(real_directory):
    sizes = {
        load: [len(rows) for rows in load(real_directory).parts.values()]
        for load in (load_sst2_sentences, load_ag_news, load_mimic3_demo)
    }
    assert sizes[load_sst2_sentences] == [6920, 872, 1821]
    assert sizes[load_ag_news] == [9001, 7600, 1000]
    assert sizes[load_mimic3_demo] == [116]
