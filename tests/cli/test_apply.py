"""``caltest apply``: a saved map on new predictions, in a file that is otherwise the same."""

import json

import numpy as np
import pandas as pd
import pytest

from caltest.recalibration import PlattScaling, TemperatureScaling, load_recalibrator
from tests.recalibration.maps.test_base import over_confident

CLASSES = ["eel", "cat", "dog"]  # not sorted
PROB, OUTCOME = over_confident(200, 3)
LABEL = np.array(CLASSES)[OUTCOME]
COLUMNS = [f"p_{name}" for name in CLASSES]
FITTED = TemperatureScaling(classes=CLASSES).fit(pd.DataFrame(PROB, columns=COLUMNS), LABEL)
WANTED = FITTED.predict_proba(pd.DataFrame(PROB, columns=COLUMNS))[:, [2, 0, 1]]


@pytest.fixture
def map_file(tmp_path):
    FITTED.save(tmp_path / "map.json")
    return tmp_path / "map.json"


def test_all_columns_stay_and_those_of_the_map_are_found_by_name(map_file, tmp_path, run):
    frame = pd.DataFrame(PROB, columns=COLUMNS)[["p_cat", "p_dog", "p_eel"]]
    frame.insert(1, "patient", [f"{k:05}" for k in range(200)])
    frame.assign(note=["a; b", *[""] * 199]).to_csv(tmp_path / "new.csv", index=False)
    out = tmp_path / "out.csv"
    code, text, err = run("apply", map_file, tmp_path / "new.csv", "-o", out)
    assert code == 0, err
    assert "recalibrated by temperature scaling. The average confidence is" in " ".join(text.split())
    found, given = (pd.read_csv(path, dtype=str, keep_default_na=False) for path in (out, tmp_path / "new.csv"))
    assert found.columns.equals(given.columns)
    assert found[["patient", "note"]].equals(given[["patient", "note"]])
    np.testing.assert_allclose(found[COLUMNS].to_numpy(float), WANTED, rtol=1e-12)
    again = run("apply", map_file, tmp_path / "new.csv", "--prob", "p_dog,p_eel,p_cat", "-o", tmp_path / "o.parquet")
    assert again[0] == 0, again[2]
    np.testing.assert_allclose(pd.read_parquet(tmp_path / "o.parquet")[COLUMNS], WANTED, rtol=1e-12)


@pytest.mark.slow(few_draws=True)
def test_repair_writes_a_map_that_apply_reads_with_the_marks_of_the_file(tmp_path, run):
    """The event comes before its opposite in the alphabet; semicolons and commas are kept."""
    prob, outcome = over_confident(200, 2)
    frame = pd.DataFrame({"id": range(200), "risk": prob[:, 1], "state": np.where(outcome, "dead", "well")})
    path, new, out = tmp_path / "old.csv", tmp_path / "new.csv", tmp_path / "out.csv"
    frame.to_csv(path, index=False, sep=";", decimal=",")
    frame.drop(columns="state").to_csv(new, index=False, sep=";", decimal=",")
    marks = ("--sep", ";", "--decimal", ",")
    repair = ("repair", path, "-o", tmp_path / "r.csv", "--method", "PlattScaling", "--classes", "dead")
    code, _, err = run(*repair, *marks, "--resamples", "99")
    assert code == 0, err
    assert pd.read_csv(tmp_path / "r.csv", sep=";", decimal=",").columns.tolist() == [*frame.columns, "fold"]
    code, text, err = run("apply", tmp_path / "r.json", new, "-o", out, *marks, "--json")
    assert code == 0, err
    wanted = PlattScaling().fit(prob[:, 1], outcome).predict_proba(prob[:, 1])[:, 1]
    found = pd.read_csv(out, sep=";", decimal=",")
    np.testing.assert_allclose(found["risk"], wanted, rtol=1e-9)
    assert found["id"].tolist() == frame["id"].tolist()
    said = json.loads(text)
    assert said["after"] == pytest.approx(wanted.mean())
    assert said["quantity"] == "average predicted probability of dead"
    assert load_recalibrator(tmp_path / "r.json").feature_names_in_.tolist() == ["risk"]


def test_arrays_and_maps_without_names(tmp_path, run):
    TemperatureScaling(classes=CLASSES).fit(PROB, LABEL).save(tmp_path / "m.json")
    np.savez(tmp_path / "new.npz", probs=PROB, patient=np.arange(200))
    code, _, err = run("apply", tmp_path / "m.json", tmp_path / "new.npz", "-o", tmp_path / "out.npz")
    assert code == 0, err
    with np.load(tmp_path / "out.npz") as found:
        np.testing.assert_allclose(found["probs"], WANTED, rtol=1e-12)
        assert found["patient"].tolist() == list(range(200))
    pd.DataFrame(PROB, columns=CLASSES)[["dog", "eel", "cat"]].to_csv(tmp_path / "new.csv", index=False)
    code, _, err = run("apply", tmp_path / "m.json", tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert code == 0, err
    np.testing.assert_allclose(pd.read_csv(tmp_path / "out.csv")[CLASSES], WANTED, rtol=1e-12)
    pd.DataFrame(PROB, columns=["p0", "p1", "p2"]).to_csv(tmp_path / "numbers.csv", index=False)
    code, _, err = run("apply", tmp_path / "m.json", tmp_path / "numbers.csv", "-o", tmp_path / "out.csv")
    assert code == 2
    assert "the columns are p0, p1, p2; the map is for the classes eel, cat, dog; name the columns of these" in err


def test_refusals(map_file, tmp_path, run):
    path, out = tmp_path / "new.csv", tmp_path / "out.csv"
    pd.DataFrame(PROB, columns=["p_eel", "p_cat", "p_fox"]).assign(q=0.5).to_csv(path, index=False)
    TemperatureScaling(input="logits").fit(PROB, OUTCOME).save(tmp_path / "logits.json")
    for arguments, words in (
        ((map_file, path, "-o", out), "there is no column 'p_dog'; the columns are p_eel, p_cat, p_fox, q; the map is"),
        (
            (map_file, path, "-o", out, "--prob", "p_eel,q"),
            "there are 2 columns of probabilities, p_eel, q; the map is",
        ),
        ((map_file, path, "-o", out, "--prob", "p_eel,p_cat,q"), "the probability columns"),
        ((map_file, path, "-o", path, "--prob", "p_eel,p_cat,p_fox"), "would replace the file that is read"),
        ((path, path, "-o", out), "is no recalibration map of caltest"),
        ((tmp_path / "no.json", path, "-o", out), "no such file"),
        ((tmp_path / "logits.json", path, "-o", out), "is a map of logits"),
        ((map_file, path, "-o", tmp_path / "out.png"), "must name a file such as OUT.csv"),
    ):
        code, text, err = run("apply", *arguments)
        assert (code, text, words in err) == (2, "", True), (arguments, err)
    assert not out.exists()
