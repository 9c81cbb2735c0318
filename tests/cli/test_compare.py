"""``caltest compare``: what the function says, from files."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import caltest

Y_TRUE, MODELS = caltest.datasets.load_digits_predictions()
NAMES = list(MODELS)[:3]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name in NAMES:
        frame = pd.DataFrame(MODELS[name], columns=[f"p_{k}" for k in range(10)]).assign(digit=Y_TRUE)
        frame.to_csv(folder / f"{name}.csv", index=False)
    return [str(folder / f"{name}.csv") for name in NAMES]


def test_the_command_says_what_the_function_says(files, run, answer):
    models = {name: MODELS[name] for name in NAMES}
    code, out, err = run("compare", *files, "--resamples", "99")
    assert (code, err) == (0, "")
    result, columns = out.rsplit("\n\n", 1)
    comparison = caltest.compare_models(Y_TRUE, models, n_resamples=99, rng=0)
    assert result == str(comparison.verdict)
    detailed = run("compare", *files, "--resamples", "99", "--details")[1]
    assert detailed.rsplit("\n\n", 1)[0] == str(comparison)
    assert columns.startswith("Label column: digit. Labels and their probability columns: 0 -> p_0, 1 -> p_1, 2")
    options = {
        "lens": caltest.ClassWise(3),
        "partition": caltest.EqualMass(10),
        "statistic": caltest.KS(),
        "correction": "bonferroni",
        "alpha": 0.1,
    }
    expected = caltest.compare_models(Y_TRUE, models, **options, n_resamples=99, rng=0)
    found = answer(
        *("compare", *files, "--label", "digit", "--lens", "ClassWise('3')", "--partition", "EqualMass(10)"),
        *("--statistic", "KS", "--correction", "bonferroni", "--confidence-level", "0.9"),
    )
    data = found.pop("data")
    assert [file["source"] for file in data] == NAMES
    assert data[0]["columns"][3] == {"label": 3, "column": "p_3"}
    assert found == expected.to_dict()


@pytest.mark.slow(few_draws=True)
def test_data_sets_of_their_own_and_a_picture(files, tmp_path, run):
    picture = tmp_path / "forest.png"
    arguments = ["compare", *files[:2], "--unpaired", "--resamples", "99"]
    pairs = {name: (Y_TRUE, MODELS[name]) for name in NAMES[:2]}
    expected = str(caltest.compare_models(None, pairs, n_resamples=99, rng=0).verdict)
    code, out, err = run(*arguments)
    assert (code, out.rsplit("\n\n", 1)[0], err) == (0, expected, "")
    code, _, err = run(*arguments, "--plot", picture)
    assert code == 0
    assert err == f"forest plot written to {picture}\n"
    assert picture.stat().st_size > 10_000


@pytest.mark.slow(few_draws=True)
def test_files_of_one_name_are_told_apart_by_their_folders(files, tmp_path, run):
    same = tmp_path / f"{NAMES[0]}.csv"
    pd.read_csv(files[1]).to_csv(same, index=False)
    code, out, _ = run("compare", files[0], same, "--resamples", "99")
    assert code == 0
    assert str(same) in "".join(line.split(" ")[1] for line in out.splitlines() if line.startswith(" "))


@pytest.mark.slow(few_draws=True)
def test_what_cannot_be_compared_is_refused(files, tmp_path, run):
    frame = pd.read_csv(files[0])
    shorter, other, fewer, bad = (str(tmp_path / f"{name}.csv") for name in ("shorter", "other", "fewer", "bad"))
    frame.iloc[1:].to_csv(shorter, index=False)
    frame.assign(digit=frame["digit"][::-1].to_numpy()).to_csv(other, index=False)
    frame.rename(columns={"p_9": "p_10"}).to_csv(fewer, index=False)
    frame.assign(p_0=frame["p_0"] + 2).to_csv(bad, index=False)
    cases = [
        ([files[0]], "two files or more are compared, got"),
        ([files[0], files[0]], "files must differ"),
        ([files[0], shorter], "shorter: 898 observations where others have 899; files of different data sets need"),
        ([files[0], other], "other: label"),
        ([files[0], other], "(--unpaired)"),
        ([files[0], fewer], "the label column holds the label 9, which has no column of probabilities"),
        ([files[0], bad], "is no probability between 0 and 1 (899 such values"),
        ([files[0], "absent.csv"], "no such file"),
        ([*files[:2], "--correction", "tukey"], "--correction must be one of"),
        ([*files[:2], "--confidence-level", "95"], "--confidence-level: must be a number strictly between 0 and 1"),
        ([*files[:2], "--partition", "equal-mass:10"], "is not a Python expression such as EqualMass(10)"),
        (
            [*files[:2], "--lens", "Canonical", "--partition", "EqualMass(9)"],
            "EqualMass needs a lens with two outcomes, such as --lens",
        ),
        ([*files[:2], "--lens", "ClassWise(dog)"], "there is no class 'dog'; the classes of this file are 0, 1, 2"),
        ([*files[:2], "--plot", "forest.xyz"], "--plot: must name a picture"),
    ]
    for arguments, message in cases:
        code, out, err = run("compare", *arguments)
        assert (code, out) == (2, ""), arguments
        assert err.count("\n") == 1
        assert message in err, (arguments, err)


@pytest.mark.slow(few_draws=True)
def test_folds_are_compared_one_by_one(tmp_path, files, run, answer):
    folder = tmp_path
    fold = np.arange(len(Y_TRUE)) % 3
    for path in files[:2]:
        pd.read_csv(path).assign(fold=fold).to_csv(folder / Path(path).name, index=False)
    arguments = [folder / f"{name}.csv" for name in NAMES[:2]]
    options = ["--label", "digit", "--folds", "fold", "--resamples", "199"]
    models = {name: MODELS[name] for name in NAMES[:2]}
    expected = caltest.compare_models(Y_TRUE, models, folds=fold, n_resamples=199, rng=0)
    code, out, _ = run("compare", *arguments, *options)
    assert (code, out.rsplit("\n\n", 1)[0]) == (0, str(expected.verdict))
    pd.read_csv(arguments[1]).assign(fold=1 - fold).to_csv(arguments[1], index=False)
    assert "the folds are not those of other files" in run("compare", *arguments, *options)[2]
    assert "leave out --unpaired" in run("compare", *arguments, *options, "--unpaired")[2]
