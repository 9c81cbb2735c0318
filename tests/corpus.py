"""Files of predictions as other software writes them, with what they mean.

Each file of `FILES` is made from the same kind of data: labels, and the probability of each label. `means` says which
label is the event of which column, so that a test can see whether a file is read as it was meant.
"""

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tests import writers

N = 60


@dataclass(frozen=True, eq=False)
class File:
    """A file: its name and content, the labels as texts, and the probability of each label.

    ``at_first`` says whether it must be read without any option.
    """

    name: str
    content: bytes
    label: list[str]
    prob: Mapping[str, np.ndarray]
    at_first: bool = True


def _binary(events=0.4, seed=1, decimals=6):
    rng = np.random.default_rng(seed)
    p = np.round(rng.beta(2 * events, 2 * (1 - events), N) * 0.98 + 0.01, decimals)
    return p, (rng.random(N) < p).astype(int)


def _classes(n_classes=3, seed=2):
    rng = np.random.default_rng(seed)
    prob = np.round(rng.dirichlet(np.ones(n_classes), N), 6)
    prob[:, -1] = np.round(1 - prob[:, :-1].sum(axis=1), 6)
    label = (rng.random((N, 1)) > prob.cumsum(axis=1)).sum(axis=1).clip(0, n_classes - 1)
    return prob, label


FILES: list[Callable[[], File]] = []


def _file(function):
    FILES.append(function)
    return function


def _csv(frame, **how):
    return frame.to_csv(index=False, **how).encode()


def _two(name, content, label, p, event, other, at_first=True):
    """A file of two outcomes with the probability of the event."""
    return File(name, content, label, {event: p, other: 1 - p}, at_first)


def _words(event, other, *, label="outcome", column="p", name=None, at_first=True, extra=None, seed=3):
    def make():
        p, y = _binary(seed=seed)
        words = [event if one else other for one in y]
        frame = pd.DataFrame({**(extra or {}), label: words, column: p})
        text = name or f"{event} and {other}.csv".replace("/", " ")
        return _two(text, _csv(frame), words, p, event, other, at_first)

    FILES.append(make)


# Two outcomes whose words say which one is the event.
_words("yes", "no")
_words("Yes", "No", label="died")
_words("TRUE", "FALSE")
_words("true", "false", label="readmitted")
_words("y", "n", label="churned")
_words("Y", "N", label="default")
_words("positive", "negative", label="test_result")
_words("Positive", "Negative", label="biopsy")
_words("pos", "neg")
_words("event", "no event")
_words("Event", "No event", label="status")
_words("case", "control", label="group")
_words("Case", "Control")
_words("yes", "no", label="died", extra={"patient_id": np.arange(1001, 1001 + N)}, name="hospital.csv")
_words("ja", "nein", label="gestorben", at_first=False)
_words("spam", "ham", at_first=False)
_words("malignant", "benign", column="malignant_probability", at_first=True)
_words("default", "paid", column="prob_default", label="status", name="bank.csv")
_words("churn", "stay", column="P(churn)", name="crm.csv")


def _integers(label, column="p", *, name, extra=None, seed=4, at_first=True, write=_csv, **how):
    def make():
        p, y = _binary(seed=seed)
        frame = pd.DataFrame({**(extra(p, y) if extra else {}), label: y, column: p})
        return _two(name, write(frame, **how), [str(one) for one in y], p, "1", "0", at_first)

    FILES.append(make)


# Names of labels beside ids.
_integers("y_test", "y_pred_proba", name="scikit-learn.csv")
_integers("label", "score", name="label and score.csv", extra=lambda p, y: {"id": np.arange(N)})
_integers("target", "probability", name="kaggle.csv", extra=lambda p, y: {"ID_code": [f"test_{i}" for i in range(N)]})
_integers("outcome", "risk", name="clinic.csv", extra=lambda p, y: {"Nr": np.arange(1, N + 1)})
_integers("default", "PD", name="credit.csv", extra=lambda p, y: {"loan_id": 10_000 + np.arange(N)})
_integers("correct", "confidence", name="top label.csv", extra=lambda p, y: {"question_id": np.arange(N)})
_integers("died", "predicted_risk", name="registry.csv", extra=lambda p, y: {"mrn": 7_000_000 + 13 * np.arange(N)})
_integers("died_30d", "risk_score", name="readmission.csv", extra=lambda p, y: {"pid": 1 + np.arange(N)})
_integers("event", "pred", name="val.prob.csv", extra=lambda p, y: {"": np.arange(1, N + 1)})
_integers("Survived", "prob", name="titanic.csv", extra=lambda p, y: {"PassengerId": 892 + np.arange(N)})
_integers("y", "yhat", name="statsmodels.csv")
_integers(
    "actual", "p1", name="h2o like.csv", extra=lambda p, y: {"predict": (p > 0.5).astype(int), "p0": (1 - p).round(6)}
)
_integers("TARGET", "P_TARGET1", name="sas.csv", extra=lambda p, y: {"P_TARGET0": (1 - p).round(6)})
_integers("label", "prediction", name="xgboost.csv")
_integers("label", "probability", name="lightgbm.tsv", write=lambda f: f.to_csv(index=False, sep="\t").encode())
_integers("is_fraud", "fraud_score", name="bank fraud.csv", extra=lambda p, y: {"txn": np.arange(N) * 7})
_integers("y_true", "y_pred", name="keras.csv", extra=lambda p, y: {"filename": [f"img_{i:04d}.png" for i in range(N)]})
_integers("y_true", "y_prob", name="with predicted class.csv", extra=lambda p, y: {"y_pred": (p > 0.5).astype(int)})
_integers("outcome", "p", name="write.csv2.csv", write=lambda f: f.to_csv(index=True, sep=";", decimal=",").encode())
_integers(
    "outcome",
    "p",
    name="excel german.csv",
    write=lambda f: ("\ufeff" + f.to_csv(index=False, sep=";", decimal=",")).replace("\n", "\r\n").encode(),
)
_integers("outcome", "p", name="semicolons.csv", write=lambda f: f.to_csv(index=False, sep=";").encode())
_integers("outcome", "p", name="tabs in a csv.csv", write=lambda f: f.to_csv(index=False, sep="\t").encode())
_integers("outcome", "p", name="pipes.txt", write=lambda f: f.to_csv(index=False, sep="|").encode())
_integers("outcome", "p", name="blanks.txt", write=lambda f: f.to_csv(index=False, sep=" ").encode())
_integers("y", "p", name="a parquet.parquet", write=writers.parquet)
_integers("y", "p", name="a feather.feather", write=writers.feather)
_integers("y", "p", name="records.json", write=lambda f: f.to_json(orient="records").encode())
_integers("y", "p", name="columns.json", write=lambda f: f.to_json(orient="columns").encode())
_integers("y", "p", name="split.json", write=lambda f: f.to_json(orient="split").encode())
_integers("y", "p", name="lines.jsonl", write=lambda f: f.to_json(orient="records", lines=True).encode())
_integers(
    "correct",
    "confidence",
    name="answers.jsonl",
    write=lambda f: (
        f.assign(correct=f.correct.astype(bool), question=[f"q{i}" for i in range(N)])
        .to_json(orient="records", lines=True)
        .encode()
    ),
)
_integers("Étiquette", "p", name="latin-1.csv", at_first=False, write=lambda f: f.to_csv(index=False).encode("latin-1"))


_integers(
    "hospital_expire_flag",
    "pred_mortality",
    name="icu.csv",
    extra=lambda p, y: {"age": 20 + np.arange(N), "sofa": np.arange(N) % 20},
)
_integers(
    "in_hospital_death", "Predicted risk of death", name="ward.csv", extra=lambda p, y: {"SAPS-III": np.arange(N)}
)


@_file
def r_row_names():
    """write.csv of R with row names, one name fewer in the header (write.table)."""
    p, y = _binary(seed=5)
    lines = ['"y" "p"', *(f'"{i}" {a} {b}' for i, (a, b) in enumerate(zip(y, p, strict=True), 1))]
    return _two("write.table.txt", "\n".join(lines).encode(), [*map(str, y)], p, "1", "0")


@_file
def r_quoted():
    """write.csv of R: quoted names and row names with an empty name."""
    p, y = _binary(seed=6)
    lines = ['"","y","p"', *(f'"{i}",{a},{b}' for i, (a, b) in enumerate(zip(y, p, strict=True), 1))]
    return _two("write.csv.csv", "\n".join(lines).encode(), [*map(str, y)], p, "1", "0")


@_file
def percent():
    """Percentages."""
    p, y = _binary(seed=7, decimals=4)
    frame = pd.DataFrame({"died": y, "risk_percent": np.round(100 * p, 2)})
    return _two("percent.csv", _csv(frame), [*map(str, y)], p, "1", "0", False)


@_file
def percent_signs():
    """Percentages with signs."""
    p, y = _binary(seed=8, decimals=3)
    frame = pd.DataFrame({"died": y, "risk": [f"{100 * x:.1f} %" for x in p]})
    return _two("percent signs.csv", _csv(frame), [*map(str, y)], p, "1", "0", False)


@_file
def binary_logits():
    """Logits of the event."""
    p, y = _binary(seed=9)
    frame = pd.DataFrame({"label": y, "logit": np.log(p / (1 - p))})
    return _two("logits.csv", _csv(frame), [*map(str, y)], p, "1", "0", False)


@_file
def class_logits():
    """Logits of three classes, as PyTorch has them."""
    prob, y = _classes(seed=10)
    prob = np.maximum(prob, 1e-6)
    prob /= prob.sum(axis=1, keepdims=True)
    frame = pd.DataFrame(np.log(prob) + 1.5, columns=["logit_0", "logit_1", "logit_2"]).assign(label=y)
    return File("class logits.csv", _csv(frame), [*map(str, y)], {str(k): prob[:, k] for k in range(3)}, False)


def _arrays(name, y_key, p_key, **more):
    def make():
        prob, y = _classes(seed=11)
        content = io.BytesIO()
        np.savez(content, **{y_key: y, p_key: prob.astype(np.float32), **more})
        return File(name, content.getvalue(), [*map(str, y)], {str(k): prob[:, k] for k in range(3)})

    FILES.append(make)


_arrays("keras.npz", "y_test", "y_pred")
_arrays("torch.npz", "targets", "probs")
_arrays("torch softmax.npz", "labels", "softmax")
_arrays("outputs.npz", "labels", "outputs")
_arrays("huggingface.npz", "label_ids", "predictions")


@_file
def npz_logits():
    """Logits of Hugging Face's Trainer.predict."""
    prob, y = _classes(seed=12)
    prob = np.maximum(prob, 1e-6)
    prob /= prob.sum(axis=1, keepdims=True)
    content = io.BytesIO()
    np.savez(content, logits=np.log(prob), labels=y)
    return File("logits.npz", content.getvalue(), [*map(str, y)], {str(k): prob[:, k] for k in range(3)}, False)


def _many(name, write, labels=("cat", "dog", "owl"), columns=None, seed=13, at_first=True, numbers=False):
    def make():
        prob, y = _classes(len(labels), seed)
        words = [*map(str, y)] if numbers else [labels[k] for k in y]
        keys = [str(k) for k in range(len(labels))] if numbers else labels
        frame = pd.DataFrame(prob, columns=list(columns or labels))
        return File(
            name, write(frame, y if numbers else words), words, {k: prob[:, i] for i, k in enumerate(keys)}, at_first
        )

    FILES.append(make)


_many("classes.csv", lambda f, y: _csv(f.assign(label=y)))
_many("predicted too.csv", lambda f, y: _csv(f.assign(predicted=f.columns[f.to_numpy().argmax(axis=1)], true=y)))
_many(
    "h2o.csv",
    lambda f, y: _csv(
        pd.concat(
            [pd.Series(f.columns[f.to_numpy().argmax(axis=1)], name="predict"), f, pd.Series(y, name="species")], axis=1
        )
    ),
)
_many(
    "caret.csv",
    lambda f, y: _csv(
        f.assign(obs=y, pred=f.columns[f.to_numpy().argmax(axis=1)], Resample="Fold1", rowIndex=range(1, N + 1))
    ),
    ("setosa", "versicolor", "virginica"),
)
_many(
    "tidymodels.csv",
    lambda f, y: _csv(f.assign(truth=y, **{".pred_class": [c[6:] for c in f.columns[f.to_numpy().argmax(axis=1)]]})),
    columns=(".pred_cat", ".pred_dog", ".pred_owl"),
)
_many(
    "sas classes.csv",
    lambda f, y: _csv(f.assign(F_animal=y, I_animal=[c[8:] for c in f.columns[f.to_numpy().argmax(axis=1)]])),
    columns=("P_animalcat", "P_animaldog", "P_animalowl"),
    at_first=False,
)
_many(
    "probability of.csv",
    lambda f, y: _csv(f.assign(label=y)),
    columns=("probability(cat)", "probability(dog)", "probability(owl)"),
)
_many("numbered.csv", lambda f, y: _csv(f.assign(label=y)), columns=("class_0", "class_1", "class_2"), numbers=True)
_many("float labels.csv", lambda f, y: _csv(f.assign(label=y.astype(float))), columns=("0", "1", "2"), numbers=True)
_many("headless.csv", lambda f, y: f.assign(label=y).to_csv(index=False, header=False).encode(), numbers=True)
_many("savetxt.txt", lambda f, y: _savetxt(f.assign(label=y).to_numpy()), numbers=True)
_many(
    "one-hot.csv",
    lambda f, y: _csv(
        pd.concat(
            [
                f.add_prefix("p_"),
                pd.DataFrame(np.eye(3, dtype=int)[[list(f.columns).index(one) for one in y]], columns=f.columns),
            ],
            axis=1,
        )
    ),
    at_first=False,
)
_many(
    "lists.parquet",
    lambda f, y: writers.parquet(pd.DataFrame({"label": y, "probabilities": f.to_numpy().tolist()})),
    numbers=True,
)
_many(
    "lists.jsonl",
    lambda f, y: (
        pd.DataFrame({"label": y, "probs": f.to_numpy().tolist()}).to_json(orient="records", lines=True).encode()
    ),
    numbers=True,
)
_many(
    "list texts.csv",
    lambda f, y: _csv(pd.DataFrame({"label": y, "probs": [str(row) for row in f.to_numpy().tolist()]})),
    numbers=True,
)
_many(
    "pipeline.json",
    lambda f, y: json.dumps(
        [{"label": one, "scores": _scores(row)} for one, row in zip(y, f.to_dict("records"), strict=True)]
    ).encode(),
)
_many(
    "pipeline.jsonl",
    lambda f, y: (
        pd.DataFrame({"text": "...", "true": y, "output": [_scores(row) for row in f.to_dict("records")]})
        .to_json(orient="records", lines=True)
        .encode()
    ),
)
_many(
    "long.csv",
    lambda f, y: _csv(
        f.assign(id=range(N), label=y)
        .melt(["id", "label"], var_name="class", value_name="probability")
        .sort_values("id")
    ),
)
_many("excel.xlsx", lambda f, y: _excel(f.assign(label=y)))


_many(
    "football.csv",
    lambda f, y: _csv(f.assign(FTR=y, HomeTeam=["A", "H", "Z"] * 20, Date="01/02/2024")),
    labels=("H", "D", "A"),
    columns=("pH", "pD", "pA"),
)
_many(
    "orange.csv",
    lambda f, y: _csv(f.assign(animal=y, forest=[c[8:-1] for c in f.columns[f.to_numpy().argmax(axis=1)]])),
    columns=("forest (cat)", "forest (dog)", "forest (owl)"),
)
_many(
    "run.jsonl",
    lambda f, y: (
        pd.DataFrame({"_timestamp": 1.7e9 + np.arange(N) / 2, "y_true": y, "probabilities": f.to_numpy().tolist()})
        .assign(loss=np.linspace(0, 3, N))
        .to_json(orient="records", lines=True)
        .encode()
    ),
    numbers=True,
)


@_file
def spark():
    """JSON lines of Spark ML, with vectors and the predicted class as a float; vectors with zeros are sparse."""
    p, y = _binary(seed=21)
    p[:2] = 0.0, 1.0
    rows = []
    for one, event in zip(p, y, strict=True):
        values = [round(1 - one, 6), float(one)]
        sparse = {"type": 0, "size": 2, "indices": [int(one)], "values": [1.0]}
        vector = sparse if one in {0, 1} else {"type": 1, "values": values}
        rows.append({"label": float(event), "probability": vector, "prediction": float(one > 0.5)})
    return _two("spark.json", "\n".join(map(json.dumps, rows)).encode(), [*map(str, y)], p, "1", "0")


@_file
def missing_words():
    """Labels that are words, of which R writes the missing ones as NA."""
    p, y = _binary(seed=22)
    words = np.where(np.arange(N) % 7 == 3, "NA", np.where(y, "event", "censored"))
    kept = words != "NA"
    frame = pd.DataFrame({"id": np.arange(N), "status": words, "risk5y": p})
    return _two("missing words.csv", _csv(frame), [*words[kept]], p[kept], "event", "censored", False)


@_file
def unlabelled():
    """Labels of -1 where none is known."""
    p, y = _binary(seed=25)
    label = np.where(np.arange(N) % 15 == 3, -1, y)
    kept = label >= 0
    frame = pd.DataFrame({"doc": np.arange(N), "label": label, "prob": p})
    return _two("unlabelled.csv", _csv(frame), [*map(str, label[kept])], p[kept], "1", "0", False)


@_file
def nested():
    """A list of predictions beside what is said about the model."""
    p, y = _binary(seed=26)
    rows = [{"id": k, "y": int(one), "p": float(p[k])} for k, one in enumerate(y)]
    content = json.dumps({"model": "m1", "metrics": {"auc": 0.8}, "predictions": rows}).encode()
    return _two("nested.json", content, [*map(str, y)], p, "1", "0")


@_file
def proc_logistic():
    """PROC LOGISTIC of SAS: a constant level, the prediction and its log odds."""
    p, y = _binary(seed=27)
    frame = pd.DataFrame({"_LEVEL_": 1, "low": y, "phat": p, "xbeta": np.log(p / (1 - p))})
    return _two("proc logistic.csv", _csv(frame), [*map(str, y)], p, "1", "0", False)


@_file
def percent_with_commas():
    """Percentages with signs and decimal commas."""
    p, y = _binary(seed=23, decimals=3)
    risk = [f"{100 * one:.1f} %".replace(".", ",") for one in p]
    frame = pd.DataFrame({"Patient": np.arange(N) + 501, "Ereignis": y, "Risiko": risk})
    return _two("percent commas.csv", _csv(frame, sep=";"), [*map(str, y)], p, "1", "0")


@_file
def whole_percent():
    """Whole percentages in steps of ten, as weather services publish them."""
    p, y = _binary(seed=24, decimals=1)
    dates = pd.date_range("2025-01-01", periods=N).strftime("%Y-%m-%d")
    frame = pd.DataFrame({"date": dates, "pop": (100 * p).round().astype(int), "rain_observed": y})
    return _two("pop.csv", _csv(frame), [*map(str, y)], p, "1", "0", False)


def _savetxt(values):
    content = io.BytesIO()
    np.savetxt(content, values)
    return content.getvalue()


def _excel(frame):
    content = io.BytesIO()
    frame.to_excel(content, index=False)
    return content.getvalue()


def _scores(row):
    return [{"label": name, "score": value} for name, value in sorted(row.items(), key=lambda pair: -pair[1])]


@_file
def top_one():
    """The most probable class with its score: is it right?"""
    prob, y = _classes(seed=14)
    names = np.array(["cat", "dog", "owl"])
    predicted, score = prob.argmax(axis=1), prob.max(axis=1)
    frame = pd.DataFrame({"label": names[y], "prediction": names[predicted], "score": score})
    right = (predicted == y).astype(int)
    return _two("top 1.csv", _csv(frame), [*map(str, right)], score, "1", "0")


@_file
def missing_labels():
    """Some labels are missing."""
    p, y = _binary(seed=15)
    label = [str(one) if i % 10 else "" for i, one in enumerate(y)]
    kept = np.array([i % 10 != 0 for i in range(N)])
    return _two(
        "missing.csv", _csv(pd.DataFrame({"outcome": label, "p": p})), [*map(str, y[kept])], p[kept], "1", "0", False
    )


@_file
def verbal():
    """Confidences in words."""
    _, y = _binary(seed=16)
    words = np.array(["very likely", "likely", "unlikely"])[np.random.default_rng(3).integers(3, size=N)]
    value = {"very likely": 0.9, "likely": 0.7, "unlikely": 0.2}
    p = np.array([value[one] for one in words])
    return _two(
        "verbal.csv", _csv(pd.DataFrame({"correct": y, "confidence": words})), [*map(str, y)], p, "1", "0", False
    )


@_file
def scikit_learn_classes():
    """predict_proba of scikit-learn as a frame, with classes_ as names."""
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression

    data = load_iris(as_frame=True)
    names = data.target_names[data.target]
    model = LogisticRegression(max_iter=1000).fit(data.data, names)
    prob = model.predict_proba(data.data)
    frame = data.data.join(pd.DataFrame(prob, columns=model.classes_)).assign(species=names)
    return File("iris.csv", _csv(frame), list(names), {c: prob[:, k] for k, c in enumerate(model.classes_)}, False)


def _choices(name, equal):
    """Log-likelihoods of choices as lm-eval logs them."""

    def make():
        prob, y = _classes(seed=17)
        prob = np.maximum(prob, 1e-6)
        prob /= prob.sum(axis=1, keepdims=True)
        rows = []
        for i in range(N):
            pairs = [[str(np.log(p) - 3), "False"] for p in prob[i]]
            pairs += [] if equal or i else [["-60.0", "False"]]  # another choice that is next to impossible
            resps = [[pair] for pair in pairs]
            rows.append(
                {"doc_id": i, "doc": {}, "target": str(y[i]), "resps": resps, "filtered_resps": pairs, "acc": 1.0}
            )
        content = "\n".join(map(json.dumps, rows)).encode()
        if equal:
            return File(name, content, [*map(str, y)], {str(k): prob[:, k] for k in range(3)})
        right, top = (prob.argmax(axis=1) == y).astype(int), prob.max(axis=1)
        return _two(name, content, [*map(str, right)], top, "1", "0")

    FILES.append(make)


_choices("samples_arc.jsonl", equal=True)
_choices("samples_mixed.jsonl", equal=False)


@_file
def inspect():
    """A log of Inspect: samples whose scorer says C or I, and in its metadata how confident the model was."""
    p, y = _binary(seed=31)
    samples = [
        {
            **{"id": i, "epoch": 1, "input": f"question {i}", "target": str(i % 7)},
            **{"messages": [{"role": "user", "content": "?"}], "output": {"model": "m", "choices": [{"message": {}}]}},
            "scores": {"match": {"value": "IC"[y[i]], "answer": "4", "metadata": {"confidence": p[i]}}},
        }
        for i in range(N)
    ]
    log = {"version": 2, "status": "success", "eval": {"task": "sums"}, "results": {"scores": []}, "samples": samples}
    return _two("log.json", json.dumps(log).encode(), [*map(str, y)], p, "1", "0")


@_file
def annotators():
    """Three annotators of each item, whose prediction stands beside each of their labels."""
    p, _ = _binary(seed=32)
    p, rng = np.repeat(p[: N // 3], 3), np.random.default_rng(33)
    y = (rng.random(len(p)) < p).astype(int)
    who, item = np.tile(["anna", "ben", "carl"], N // 3), np.arange(len(p)) // 3
    frame = pd.DataFrame({"item": item, "annotator": who, "label": y, "prob": p})
    return _two("annotators.csv", _csv(frame), [*map(str, y)], p, "1", "0")


@_file
def hospital():
    """A table of a clinic: an id that repeats, dates, ages, percentages, and Yes or No."""
    p, y = _binary(seed=18, decimals=3)
    words = ["Yes" if one else "No" for one in y]
    frame = pd.DataFrame({"PatientID": np.arange(N) // 2, "AdmissionDate": "01.02.2024", "Age": 20 + np.arange(N)})
    frame = frame.assign(Sex=["M", "F"] * (N // 2), Readmit30=words, RiskScore=(100 * p).round(1))
    return _two("clinic german.csv", _csv(frame, sep=";", decimal=","), words, p, "Yes", "No", False)


@_file
def bank():
    """A table of a bank: another number than the probability of default, and segments."""
    p, y = _binary(seed=19)
    frame = pd.DataFrame({"loan": [f"L{i}" for i in range(N)], "PD": p, "defaulted": y, "EAD": 5000.25 + np.arange(N)})
    return _two("loans.csv", _csv(frame.assign(segment=["retail", "sme"] * 30)), [*map(str, y)], p, "1", "0")


@_file
def language_model():
    """Answers of a language model, the correct ones, and confidences."""
    prob, y = _classes(4, seed=20)
    answer, correct = (np.array(list("ABCD"))[one] for one in (prob.argmax(axis=1), y))
    frame = pd.DataFrame({"id": range(N), "answer": answer, "correct_answer": correct, "confidence": prob.max(axis=1)})
    right = (answer == correct).astype(int)
    return _two("answers.csv", _csv(frame), [*map(str, right)], prob.max(axis=1), "1", "0")
