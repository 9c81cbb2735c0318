"""A corpus of hostile and odd files: each is read as it is meant, or refused in one line that names the remedy."""

import datetime
import decimal
import io
import json
import subprocess
import sys
import time
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests import fuzz_readers, writers
from tests.reference.cases import failures

GOOD = "label,p_a,p_b\na,0.75,0.25\nb,0.5,0.5\n"
NAMED = {"a": "p_a", "b": "p_b"}
LABEL = pa.array(["a", "b"])
PROB = np.array([[0.75, 0.25], [0.5, 0.5]])
FRAME = pd.DataFrame(PROB, columns=["p_a", "p_b"]).assign(label=["a", "b"])


def table(**columns):
    return writers.parquet(pa.table({"label": LABEL, **columns}))


READ = {
    # name: (content, options, the column of each label as JSON says it)
    "plain.csv": (GOOD, [], NAMED),
    "windows.csv": (GOOD.replace("\n", "\r\n"), [], NAMED),
    "old mac.csv": (GOOD.replace("\n", "\r"), [], NAMED),
    "mark.csv": ("\ufeff" + GOOD, [], NAMED),
    "no line end.csv": (GOOD.strip(), [], NAMED),
    "blank lines.csv": ("\n\n" + GOOD.replace("\n", "\n\n"), [], NAMED),
    "one row.csv": ("label,p_a,p_b\na,0.75,0.25\n", [], NAMED),
    "capitals.csv": ("LABEL,P_A,P_B\na,0.75,0.25\nb,0.5,0.5\n", [], {"a": "P_A", "b": "P_B"}),
    "blanks.csv": (" label , p a , p b \na, 0.75, 0.25\nb, 0.5, 0.5\n", [], {"a": "p a", "b": "p b"}),
    "accents.csv": ("étiquette,p_é,p_ö\né,0.75,0.25\nö,0.5,0.5\n", [], {"é": "p_é", "ö": "p_ö"}),
    "utf16.csv": (GOOD.encode("utf-16"), [], NAMED),
    "utf16 without mark.csv": (GOOD.encode("utf-16-be"), [], NAMED),
    "latin.csv": (GOOD.replace("a", "é").encode("latin-1"), ["--encoding", "latin-1", "--label", "lébel"], None),
    "quoted.csv": ('label,"p_a, b",p_c\n"a, b",0.75,0.25\nc,0.5,0.5\n', [], {"a, b": "p_a, b", "c": "p_c"}),
    "semicolons.csv": (writers.csv(FRAME, ";", ","), ["--sep", ";", "--decimal", ","], NAMED),
    "decimal alone.csv": (writers.csv(FRAME, ";", ","), ["--decimal", ","], NAMED),
    "tabs.txt": (writers.csv(FRAME, "\t"), ["--sep", "tab"], NAMED),
    "aligned.txt": ("label   p_a   p_b\na      0.75  0.25\nb      0.5   0.5\n", ["--sep", " "], NAMED),
    "trailing.csv": (GOOD.replace("\n", ",\n"), [], NAMED),
    "trailing below.csv": ("label,p_a,p_b\na,0.75,0.25,\nb,0.5,0.5,\n", [], NAMED),
    "index.csv": (",label,p_a,p_b\n0,a,0.75,0.25\n1,b,0.5,0.5\n", [], NAMED),
    "numbered.csv": ("label,0,1\n0,0.75,0.25\n1,0.5,0.5\n", [], {0: "0", 1: "1"}),
    "all numbered.csv": ("0,1,2\n0.75,0.25,0\n0.5,0.5,1\n", [], None),
    "no names.csv": ("0.75,0.25,0\n0.5,0.5,1\n", ["--no-header"], {0: "0", 1: "1"}),
    "label first.csv": ("0,0.75,0.25\n1,0.5,0.5\n", ["--no-header"], {0: "1", 1: "2"}),
    "always zero.csv": ("y,c0,c1,c2\n0,0.75,0.25,0\n1,0.5,0.5,0\n", [], {k: f"c{k}" for k in range(3)}),
    "truth.csv": ("y,p_true,p_false\nTrue,0.2,0.8\nFalse,0.3,0.7\n", [], {True: "p_true", False: "p_false"}),
    "hard.csv": ("label,p_a,p_b\na,1,0\nb,0,1\n", [], NAMED),
    "none is a class.csv": ("label,p_None,p_NA\nNone,0.75,0.25\nNA,0.5,0.5\n", [], {"None": "p_None", "NA": "p_NA"}),
    "floats.csv": ("y,p\n1.0,0.75\n0.0,0.5\n", [], {1: "p"}),
    "booleans.csv": ("y,p\nTrue,0.75\nfalse,0.5\n", [], {True: "p"}),
    "yes.csv": ("y,p\nyes,0.75\nno,0.5\n", ["--classes", "yes"], {"yes": "p"}),
    "named yes.csv": ("y,prob_yes\nyes,0.75\nno,0.5\n", [], {"yes": "prob_yes"}),
    "event zero.csv": ("y,prob_no\n1,0.75\n0,0.5\n", ["--classes", "0"], {0: "prob_no"}),
    "only no.csv": ("y,p\nno,0.75\nno,0.5\n", ["--classes", "yes"], {"yes": "p"}),
    "right order.csv": ("y,prob_no,prob_yes\n1,0.75,0.25\n0,0.5,0.5\n", [], {0: "prob_no", 1: "prob_yes"}),
    "class names.csv": ("y,p_b,p_a\n1,0.75,0.25\n0,0.5,0.5\n", ["--class-names", "a,b"], {"b": "p_b", "a": "p_a"}),
    "three decimals.csv": ("label,p_a,p_b\na,0.749,0.25\nb,0.5,0.5\n", ["--normalise"], NAMED),
    "other weights.csv": ("label,p_a,p_b,age\na,0.75,0.25,71.5\nb,0.5,0.5,60.5\n", [], NAMED),
    "a.csv.gz": (writers.COMPRESS[".gz"](GOOD.encode()), [], NAMED),
    "a.csv.bz2": (writers.COMPRESS[".bz2"](GOOD.encode()), [], NAMED),
    "a.csv.xz": (writers.COMPRESS[".xz"](GOOD.encode()), [], NAMED),
    "a.csv.zst": (writers.COMPRESS[".zst"](GOOD.encode()), [], NAMED),
    "a.csv.zip": (writers.zipped(a_csv=GOOD), [], NAMED),
    "a.zip": (writers.zipped(a_parquet=writers.parquet(FRAME)), [], NAMED),
    "a.parquet.gz": (writers.COMPRESS[".gz"](writers.parquet(FRAME)), [], NAMED),
    "a.feather": (writers.feather(FRAME), [], NAMED),
    "a.arrow": (writers.arrow_stream(FRAME), [], NAMED),
    "a.jsonl": (writers.json_lines(FRAME), [], NAMED),
    "a.json": (writers.json_list(FRAME), [], NAMED),
    "columns.json": (json.dumps({"label": ["a", "b"], "p_a": [0.75, 0.5], "p_b": [0.25, 0.5]}), [], NAMED),
    "lists.jsonl": ('{"y": 0, "prob": [0.75, 0.25]}\n{"y": 1, "prob": [0.5, 0.5]}\n', [], {0: "prob[0]", 1: "prob[1]"}),
    "no ending": (writers.parquet(FRAME), [], NAMED),
    "parquet.csv": (writers.parquet(FRAME), ["--format", "parquet"], NAMED),
    "vectors.parquet": (
        writers.parquet(pa.table({"y": [0, 1], "prob": pa.array(PROB.tolist())})),
        [],
        {0: "prob[0]", 1: "prob[1]"},
    ),
    "int8.parquet": (writers.parquet(pa.table({"y": pa.array([0, 1], pa.int8()), "p": [0.75, 0.5]})), [], {1: "p"}),
    "decimals.parquet": (
        table(**{f"p_{k}": pa.array([decimal.Decimal("0.5")] * 2, pa.decimal128(5, 3)) for k in "ab"}),
        [],
        NAMED,
    ),
    "dictionary.parquet": (
        writers.parquet(pa.table({"label": LABEL.dictionary_encode(), "p_a": [0.75, 0.5], "p_b": [0.25, 0.5]})),
        [],
        NAMED,
    ),
    "half.parquet": (table(p_a=pa.array(PROB[:, 0].astype("f2")), p_b=pa.array(PROB[:, 1].astype("f2"))), [], NAMED),
    "columns.npy": (writers.npy(np.column_stack([[0, 1], PROB])), [], {0: "1", 1: "2"}),
    "texts.npz": (writers.npz(y=["no", "yes"], p=[0.75, 0.5]), ["--classes", "yes"], {"yes": "p"}),
    "thousand.csv": (
        "label," + ",".join(f"p_{k}" for k in range(1000)) + "\n0," + ",".join(["0.001"] * 1000),
        [],
        {k: f"p_{k}" for k in range(1000)},
    ),
    "row names of R.csv": ("p_a,p_b,label\n1,0.75,0.25,a\n2,0.5,0.5,b\n", [], NAMED),
    "percent.csv": ("label,p_a,p_b\na,80%,20%\n", [], {"a": "p_a", "b": "p_b"}),
    "semicolon.csv": (writers.csv(FRAME, ";", ","), [], NAMED),
    "tab.csv": (writers.csv(FRAME, "\t"), [], NAMED),
    "comma.tsv": (GOOD, [], NAMED),
    "no header.csv": ("0.2,0.8,1\n0.3,0.7,0\n", [], {0: "0", 1: "1"}),
    "which event.csv": ("y,p\nyes,0.2\nno,0.3\n", [], {"yes": "p"}),
    "one-hot.csv": ("p_a,p_b,is_a,is_b\n0.2,0.8,1,0\n0.3,0.7,0,1\n", [], NAMED),
}

REFUSED = {
    "empty.csv": ("", [], "cannot be read: it is empty (0 bytes)"),
    "only blanks.csv": ("\n \n", [], "there is nothing but blanks in it"),
    "only a header.csv": ("label,p_a,p_b\n", [], "there are no observations"),
    "nul.csv": (GOOD.replace("0.5", "0\0.5"), [], "holds NUL bytes"),
    "ragged.csv": (GOOD + "b,0.5,0.5,0.1\n", [], "line 4 has 4 values where 3 are expected"),
    "short row.csv": (GOOD + "b,0.5\n", [], "values are missing: 1 of the column 'p_b' (line 4); to leave out"),
    "quote.csv": (GOOD + '"b,0.5,0.5\n', [], "cannot be read: EOF inside string"),
    "comment.csv": ("# made today\n" + GOOD, [], "the first line is a comment ('# made today'); delete"),
    "broken.csv": ("a,b,label\n0.2,0.8,1\n0.3,oops,0\n", [], "'oops' in line 3, column 'b', is not a number"),
    "broken once.csv": (
        "a,b,label\n" + "0.2,0.8,1\n" * 60 + "\n0.3,oops,0\n",
        [],
        "'oops' in line 63, column 'b', is not a number; correct it, remove the row, or name other columns with --prob",
    ),
    "several wrong.csv": (
        "label,p_a,p_b\na,oops,x\nb,0.5,0.5\na,?,0.5\na,y,0.5\nb,z,0.5\n",
        [],
        "'oops' in line 2, column 'p_a', is not a number (5 such values: 4 of the column 'p_a' (line 2, line 4, "
        "line 5, ...), 1 of the column 'p_b' (line 2)); ",
    ),
    "outside.csv": (
        "label,p\n1,0.5\n0,1.5\n" + "0,0.2\n1,0.9\n" * 9 + "1,1.2\n",
        [],
        "1.5 in line 3, column 'p', is no probability between 0 and 1 (2 such values: line 3, "
        "line 22); correct it, remove the row, or name other columns with --prob",
    ),
    "prefixed.csv": ("label,p_a,p_b\na,0.5,high\nb,0.5,high\n", [], "'high' in line 2, column 'p_b', is not a number"),
    "hundred.csv": (
        "label,p_a,p_b\na,80.5,19.5\nb,30.5,69.5\n",
        [],
        "if these are percentages: --percent. If that is what the file means: caltest guess ",
    ),
    "logits.csv": (
        "label,p_a,p_b\na,-3.5,2.5\nb,0.5,0.25\n",
        [],
        "-3.5 in line 2, column 'p_a', is no probability between 0 and 1 (2 such values: ",
    ),
    "comma.csv": ('label,p_a,p_b\na,"0,75","0,25"\n', [], 'if the decimal mark is a comma, say --decimal ","'),
    "thousands.csv": ('label,p,weight\n1,0.5,"1,200"\n0,0.5,10\n', ["--weights", "weight"], "--weights must hold real"),
    "NaN.csv": (GOOD + "b,NaN,0.5\n", [], "values are missing: 1 of the column 'p_a' (line 4)"),
    "NA.csv": (GOOD + "b,NA,0.5\n", [], "values are missing: 1 of the column 'p_a' (line 4)"),
    "None.csv": (GOOD + "b,None,0.5\n", [], "values are missing: 1 of the column 'p_a' (line 4)"),
    "inf.csv": (GOOD + "b,inf,0.5\n", [], "inf in line 4, column 'p_a', is no probability"),
    "gap.csv": (GOOD + "b,,0.5\n", [], "values are missing: 1 of the column 'p_a' (line 4); to leave"),
    "no label.csv": (GOOD + ",0.5,0.5\n", [], "values are missing: 1 of the column 'label' (line 4); to leave"),
    "double.csv": ("p,p,label\n0.2,0.8,1\n", [], "the name 'p' occurs 2 times in the header (columns 1, 2)"),
    "no header, texts.csv": ("cat,1,0\ncat,0.3,0.7\n", [], "'cat' occurs again below; say --no-header"),
    "no header, hard.csv": ("1,0,1\n0,1,0\n", [], "all are numbers; say --no-header if there are no names, --header"),
    "reversed.csv": (
        "label,prob_yes,prob_no\n1,0.2,0.8\n0,0.3,0.7\n",
        [],
        "Pass --classes, the label of each column; it is 0, 1 if this order is right.",
    ),
    "prob_no.csv": (
        "y,prob_no\n1,0.2\n0,0.3\n",
        [],
        "the only probability column is 'prob_no': is it the probability of 1?",
    ),
    "one and two.csv": ("y,p\n1,0.2\n2,0.3\n", [], "the labels are 1, 2, and nothing says whose probability"),
    "Yes and yes.csv": (
        "y,p\nyes,0.2\nno,0.3\nYes,0.3\n",
        ["--classes", "yes"],
        "labels of two values, the event and its",
    ),
    "wrong event.csv": (
        "y,p\nyes,0.2\nno,0.3\n",
        ["--classes", "si"],
        "--classes names the event 'si', and the labels are",
    ),
    "two labels.csv": (
        "label,target,p\n1,0,0.5\n",
        [],
        "any of the columns label, target could hold the labels; name it with --",
    ),
    "dates.csv": (
        "label,p_a,p_b\n2024-01-01,0.5,0.5\n",
        [],
        "the label column holds the label '2024-01-01', which has no column of probabilities",
    ),
    "fraction.csv": ("label,p\n0.5,0.5\n", [], "0.5 in line 2, column 'label', is no label"),
    "times.csv": (
        "time,risk\n2.5,0.5\n3.5,0.5\n",
        [],
        "name it with --label; times to an event (survival outcomes, which may be censored) are not covered",
    ),
    "named times.csv": (
        "time,risk\n2.5,0.5\n3.5,0.5\n",
        ["--label", "time"],
        "name their column with --label; times to an event (survival outcomes, which may be censored) are not covered",
    ),
    "days.csv": (
        "".join(["outcome,risk\n", *(f"{day},0.5\n" for day in range(1, 31))]),
        [],
        "with --prob; times to an event (survival outcomes, which may be censored) are not covered",
    ),
    "shifted.csv": (
        "label,class_1,class_2\n0,0.5,0.5\n",
        [],
        "the label column holds the label 0, which has no column of probabilities",
    ),
    "stranger.csv": (
        GOOD + "c,0.5,0.5\n",
        [],
        "the label 'c', which has no column of probabilities; the probability columns are 'p_a', 'p_b'",
    ),
    "sums.csv": ("label,p_a,p_b\na,0.749,0.25\n", [], "if this is rounding: --normalise"),
    "far.csv": (
        "label,p_a,p_b\na,0.2,0.25\n",
        ["--normalise"],
        "in line 2 they sum to 0.45, not to 1; name the probability columns with --prob",
    ),
    "bytes.csv": (GOOD.replace("b,", "é,").encode("latin-1"), [], "the text is not UTF-8"),
    "odd encoding.csv": (GOOD, ["--encoding", "klingon"], "--encoding must be one that Python knows"),
    "odd sep.csv": (GOOD, ["--sep", ";;"], "--sep must be one character"),
    "same marks.csv": (GOOD, ["--sep", ",", "--decimal", ","], "--sep and --decimal must differ"),
    "sep.parquet": (writers.parquet(FRAME), ["--sep", ";"], "--sep is for CSV and TSV files"),
    "parquet in disguise.csv": (
        writers.parquet(FRAME),
        [],
        "the name says CSV, but the content is Parquet; say so with --f",
    ),
    "text.parquet": (GOOD, [], "cannot be read as Parquet"),
    "cut.parquet": (writers.parquet(FRAME)[:-40], [], "cannot be read as Parquet"),
    "text.csv.gz": (GOOD, [], "the name says gzip, but the content is not (not compressed)"),
    "cut.csv.gz": (writers.COMPRESS[".gz"](GOOD.encode())[:-9], [], "the gzip compression is broken"),
    "two.zip": (writers.zipped(a_csv=GOOD, b_csv=GOOD), [], "must hold one file, got 2 (a.csv, b.csv); unpack it and"),
    "old.xls": (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        [],
        "old Excel files (.xls) are not read; save it as .xlsx or CSV",
    ),
    "broken.jsonl": ('{"y": 0, "p": 0.5}\n{"y": 1, "p": \n', [], "line 2 is not JSON"),
    "broken number.jsonl": (
        '{"y": 0, "p": 0.5}\n{"y": 1, "p": "x"}\n',
        [],
        "'x' in line 2, column 'p', is not a number",
    ),
    "list.jsonl": ("[1, 2]\n[3, 4]\n", [], "line 1 must hold an object such as {...}, got list"),
    "twice.jsonl": ('{"y": 0, "p": 0.5, "p": 0.5}\n', [], "the name 'p' occurs twice"),
    "deep.json": ("[" * 100_000, [], "is not JSON"),
    "scalar.json": ("3", [], "JSON must hold a list of objects"),
    "lengths.parquet": (
        writers.parquet(pa.table({"y": [0, 1], "prob": [[0.5, 0.5], [1.0]]})),
        [],
        "must hold 2 probabiliti",
    ),
    "struct.parquet": (
        writers.parquet(pa.table({"y": [0, 1], "p_all": [{"a": 0.5, "b": 0.7}, {"a": 0.5, "b": 0.2}]})),
        [],
        "the columns p_a, p_b do not hold the probabilities of classes: in row 0 (counted from 0) they sum to 1.2",
    ),
    "names.jsonl": (
        '{"y": 0, "p": {"a": 0.5}, "p.a": 1}\n{"y": 1, "p": {"a": 0.5}, "p.a": 0}\n',
        [],
        "'p.a' is the name of a column and of a value within an object; rename one of them",
    ),
    "dates.parquet": (
        writers.parquet(pa.table({"y": [datetime.datetime(2024, 1, 1)] * 2, "p": [0.5, 0.5]})),
        [],
        "column 'y' holds dates or times, not labels",
    ),
    "null label.parquet": (
        writers.parquet(pa.table({"y": [0, None], "p": [0.5, 0.5]})),
        [],
        "values are missing: 1 of the column 'y' (row 1, counted from 0)",
    ),
    "keys.npz": (writers.npz(a=PROB, b=PROB), [], "cannot choose among the arrays a, b; name one with --label"),
    "cube.npz": (writers.npz(y=[0, 1], p=PROB[None]), [], "got 'y' of shape (2,) and 'p' of shape (1, 2, 2)"),
    "cube.npy": (writers.npy(PROB[None]), [], "expected a table of numbers in two dimensions, got shape (1, 2, 2)"),
    "objects.npy": (
        writers.npy(np.array([{}, None])),
        [],
        "holds Python objects, which are not read because they may run",
    ),
    "objects.npz": (writers.npz(y=np.array(["a", 1], object), p=PROB), [], "the array 'y' holds Python objects"),
}


@pytest.fixture
def guess(tmp_path, run):
    """Write a file and say what would be read."""

    def written(name, content, options):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return run("guess", path, "--json", *options)

    return written


@pytest.mark.slow(few_draws=True)
@pytest.mark.filterwarnings("ignore::caltest.results.CalibrationWarning")
def test_odd_files_are_read_as_they_are_meant(guess):
    def check(name):
        content, options, columns = READ[name]
        code, out, err = guess(name, content, options)
        assert code == 0, err
        data = json.loads(out)["data"]
        if columns is not None:
            assert {entry["label"]: entry["column"] for entry in data["columns"]} == columns
        assert data["n_samples"] == (1 if name in {"one row.csv", "thousand.csv", "percent.csv"} else 2)

    assert failures(list(READ), check) == {}


@pytest.mark.slow(few_draws=True)
def test_hostile_files_are_refused_in_one_line(guess):
    def check(name):
        content, options, message = REFUSED[name]
        code, out, err = guess(name, content, options)
        assert (code, out) == (2, ""), err
        assert message in err, err
        assert err.count("\n") == 1
        assert "`" not in err
        assert "Traceback" not in err

    assert failures(list(REFUSED), check) == {}


def test_what_is_no_file_is_named(tmp_path, run):
    assert "is a directory, not a file; name one file in it" in run("guess", tmp_path)[2]
    assert "/dev/null is a device, not a file" in run("guess", "/dev/null")[2]
    assert "no such file" in run("guess", tmp_path / ("x" * 5000))[2]


@pytest.mark.slow(few_draws=True)
def test_standard_input(monkeypatch, tmp_path, run):
    for content in (GOOD.encode(), writers.COMPRESS[".gz"](GOOD.encode()), writers.parquet(FRAME)):
        stream = io.TextIOWrapper(io.BytesIO(content))
        monkeypatch.setattr("sys.stdin", stream)
        code, out, err = run("guess", "-")
        assert (code, err) == (0, ""), err
        assert "a -> p_a, b -> p_b" in out
        assert "standard input" in out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\x00\x01")))
    assert run("guess", "-", "--format", "csv")[0] == 2
    (tmp_path / "a.csv").write_text(GOOD)
    done = subprocess.run(
        [sys.executable, "-m", "caltest.cli", "guess", "-"], input=GOOD.encode(), capture_output=True, check=True
    )
    assert done.stdout.startswith(b"file                 standard input\n")


@pytest.mark.slow(few_draws=True)
def test_excel(tmp_path, run):
    FRAME.to_excel(tmp_path / "a.xlsx", index=False)
    code, out, err = run("guess", tmp_path / "a.xlsx")
    assert code == 0, err
    assert "sheet                Sheet1" in out
    assert "a -> p_a, b -> p_b" in out
    FRAME.assign(p_b=["oops", 0.5]).to_excel(tmp_path / "b.xlsx", index=False)
    assert "'oops' in line 2, column 'p_b', is not a number" in run("guess", tmp_path / "b.xlsx")[2]
    FRAME.to_excel(tmp_path / "c.xlsx", index=False, header=False)
    assert "the first line looks like data" in run("guess", tmp_path / "c.xlsx")[2]
    assert "0 -> 0" not in run("guess", tmp_path / "c.xlsx", "--no-header", "--classes", "a,b")[1]
    FRAME.set_axis(["p", "p", "label"], axis=1).to_excel(tmp_path / "d.xlsx", index=False)
    assert "the name 'p' occurs 2 times in the header" in run("guess", tmp_path / "d.xlsx")[2]


def test_a_library_that_is_missing_is_named_with_its_command(tmp_path, run, monkeypatch):
    (tmp_path / "a.csv.zst").write_bytes(writers.zstd(GOOD.encode()))
    (tmp_path / "a.feather").write_bytes(writers.feather(FRAME))
    (tmp_path / "a.xlsx").write_bytes(writers.zipped(xl="")[:4] + b"broken")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for name in ("a.csv.zst", "a.feather"):
        code, _, err = run("guess", tmp_path / name)
        assert (code, err.count("\n")) == (2, 1)
        assert "needs pyarrow: pip install pyarrow" in err
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as archive:
        archive.writestr("xl/workbook.xml", "")
    assert "reading Excel needs openpyxl: pip install openpyxl" in run("guess", tmp_path / "a.xlsx")[2]


def test_what_is_noticed_is_said(tmp_path, run):
    text = "patient_id,fold,weight,age,y,p\n1,0,2,30.5,0,0.25\n1,0,2,40.5,1,0.5\n2,1,1,50.5,1,0.75\n"
    text += "".join(f"{k},1,1,{k}.5,0,0.{k}\n" for k in range(3, 8))
    (tmp_path / "a.csv").write_text(text)
    code, out, err = run("guess", tmp_path / "a.csv", "--prob", "p")
    assert code == 0
    for option in ("--groups", "--folds", "--weights"):
        assert option in err
    assert "note: the column 'age' is not used" in out
    chosen = ["--groups", "patient_id", "--folds", "fold", "--weights", "weight"]
    code, out, err = run("guess", tmp_path / "a.csv", "--prob", "p", *chosen)
    assert (code, err) == (0, "")
    assert "folds                fold" in out


def test_normalise_says_the_largest_change(tmp_path, run):
    (tmp_path / "a.csv").write_text("label,p_a,p_b\na,0.749,0.25\nb,0.5,0.5\n")
    code, _, err = run("guess", tmp_path / "a.csv", "--normalise")
    assert code == 0
    assert "1 of 2 rows did not sum to 1 and were divided by their sums; the largest change of a probability is" in err
    assert "0.00075 (in line 2, whose sum was 0.999)" in err


def test_no_answer_depends_on_the_command(tmp_path, run):
    """What `guess` refuses, `test` refuses with the same words; and `compare`."""
    (tmp_path / "a.csv").write_text("a,b,label\n0.2,0.8,1\n0.3,oops,0\n")
    (tmp_path / "b.csv").write_text("a,b,label\n0.2,0.8,1\n0.3,oops,0\n")
    code, shown, said = run("guess", tmp_path / "a.csv")
    expected = 2, "", said
    assert expected == run("test", tmp_path / "a.csv") == run("compare", tmp_path / "a.csv", tmp_path / "b.csv")
    assert code == 2
    assert shown.splitlines()[2].split() == ["b", "texts", "2", "0", "0.8", "oops", "0.8,", "oops"]


@pytest.mark.slow
def test_broken_files_are_answered_clearly():
    """10 seconds of `python -m tests.fuzz_readers`."""
    codes, found = fuzz_readers.fuzz(10, seed=int(time.time()))
    assert set(codes) <= {0, 2}
    assert found == []


def test_half_precision_is_read_and_shown(tmp_path, run):
    """Sums of float16 are no rounding of a file; the rows are printed without warnings of pandas."""
    prob = np.random.default_rng(0).dirichlet(np.ones(100), size=50).astype(np.float16)
    np.savez(tmp_path / "half.npz", y_prob=prob, y_true=np.arange(50))
    code, out, err = run("guess", tmp_path / "half.npz")
    assert code == 0
    assert "first rows, of 50 observations" in out
    assert err.startswith("caltest: note: Half precision (float16) of the probability columns: rows do not sum to 1.")
    assert len(err.splitlines()) == 1


def test_refused_arrays_are_shown_with_the_command_that_reads_them(tmp_path, run):
    rng = np.random.default_rng(3)
    prob = rng.dirichlet(np.ones(3), size=20)
    arrays = {"val_logits": np.log(prob) - 1, "hidden": rng.normal(size=(20, 8)), "gold": prob.argmax(axis=1)}
    np.savez(tmp_path / "a.npz", **arrays, row=np.arange(20), head=rng.random((20, 2)))
    code, out, err = run("guess", tmp_path / "a.npz")
    assert code == 2
    shown = {line.split()[0]: line for line in out.splitlines()[1:]}
    assert [*shown] == [*arrays, "row", "head"]
    assert "numbers, 20 x 3" in shown["val_logits"]
    assert f"{arrays['val_logits'].min():.6g}" in shown["val_logits"]
    assert shown["gold"].endswith(", ".join(map(str, arrays["gold"][:3])))
    code, out, _ = run(*err.split("the file means: caltest ")[1].split(), "--json")
    assert code == 0
    assert [one["column"] for one in json.loads(out)["data"]["columns"]] == [f"val_logits[{k}]" for k in range(3)]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([0.2, 1.7, 0.5] * 10, "remove the row, or name other columns with --prob"),
        ([*[0.2] * 27, 1.5, 2.5, 3.5], "if these are percentages: --percent. If that"),
        ([*[0.2] * 97, 1.5, 2.5, 3.5], "name other columns with --prob; if all are percentages: --percent"),
        ([*[0.2] * 20, *[99] * 10], "remove the row, or name other columns with --prob"),
    ],
)
def test_percentages_of_a_rare_event(tmp_path, run, values, words):
    lines = [f"{k % 2},{value}" for k, value in enumerate(values)]
    (tmp_path / "a.csv").write_text("\n".join(["died,risk", *lines]))
    code, _, err = run("guess", tmp_path / "a.csv")
    assert code == 2
    assert words in err
    assert ("--percent" in words) == ("--percent" in err)


def test_percentages_and_probabilities_read_as_logits_are_noticed(tmp_path, run):
    for name, factor in (("probabilities", 0.01), ("percentages", 1)):
        lines = [f"{k % 2},{factor * (1 + 0.5 * k):.3f}" for k in range(20)]
        (tmp_path / "a.csv").write_text("\n".join(["died,risk", *lines]))
        code, _, err = run("guess", tmp_path / "a.csv", "--logits")
        assert code == 0
        assert f"as {name} do; they were read with --logits." in err
