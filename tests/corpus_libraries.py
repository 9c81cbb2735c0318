"""Files that libraries themselves have written, with what they mean, by the name of the library.

`tests/corpus.py` imitates them, so that it needs none of them. Libraries are imported where they are used.
"""

import io
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from tests.corpus import File

N = 80
CLASSES = ("cat", "dog", "owl")


def _features(n_classes, seed=5):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, 4)).astype(np.float32)
    return x, (x[:, :n_classes] + rng.normal(size=(N, n_classes))).argmax(axis=1)


def _event(name, content, y, p, at_first=True):
    return File(name, content, [*map(str, y)], {"1": np.asarray(p, float), "0": 1 - np.asarray(p, float)}, at_first)


def _several(name, content, y, prob, keys=("0", "1", "2"), at_first=True):
    return File(name, content, [*map(str, y)], {k: prob[:, i].astype(float) for i, k in enumerate(keys)}, at_first)


def _csv(**columns):
    return pd.DataFrame(columns).to_csv(index=False).encode()


def _npz(**arrays):
    content = io.BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def _savetxt(values, **how):
    content = io.BytesIO()
    np.savetxt(content, values, **how)
    return content.getvalue()


def _xgboost() -> Iterator[File]:
    import xgboost

    common = {"verbosity": 0, "nthread": 1, "max_depth": 2}
    x, y = _features(2)
    data = xgboost.DMatrix(x, y)
    model = xgboost.train({"objective": "binary:logistic", **common}, data, 5)
    p, label = model.predict(data), data.get_label()
    yield _event("binary.csv", _csv(label=label, pred=p), y, p)
    yield _event("labels first.txt", _savetxt(np.column_stack([label, p])), y, p)
    yield _event("margin.csv", _csv(y_true=y, margin=model.predict(data, output_margin=True)), y, p, False)
    x, y = _features(3)
    data = xgboost.DMatrix(x, y)
    model = xgboost.train({"objective": "multi:softprob", "num_class": 3, **common}, data, 5)
    prob = model.predict(data)
    yield _several("softprob.npz", _npz(y_test=data.get_label(), preds=prob), y, prob)
    frame = pd.DataFrame(prob).assign(label=y)
    yield _several("softprob.csv", frame.to_csv(index=False).encode(), y, prob)
    logits = model.predict(data, output_margin=True)
    yield _several("margins.npz", _npz(margins=logits, target=y), y, prob, at_first=False)


def _lightgbm() -> Iterator[File]:
    import lightgbm

    common = {"verbose": -1, "num_threads": 1, "min_data_in_leaf": 5}
    x, y = _features(2)
    model = lightgbm.train(common | {"objective": "binary"}, lightgbm.Dataset(x, y), 5)
    p = model.predict(x)
    yield _event("predicted.tsv", pd.DataFrame({"y": y, "pred": p}).to_csv(sep="\t").encode(), y, p)
    raw = model.predict(x, raw_score=True)
    yield _event("raw score.csv", _csv(target=y, raw_score=raw), y, p, False)
    x, y = _features(3)
    names = np.array(CLASSES)[y]
    model = lightgbm.LGBMClassifier(n_estimators=3, min_child_samples=5, verbose=-1, n_jobs=1).fit(x, names)
    prob = model.predict_proba(x)
    frame = pd.DataFrame(prob, columns=model.classes_).assign(predicted=model.predict(x), true=names)
    yield _several("classes.csv", frame.to_csv().encode(), names, prob, CLASSES)
    yield _several("classes.parquet", _parquet(frame), names, prob, CLASSES)


def _parquet(frame):
    content = io.BytesIO()
    frame.to_parquet(content)
    return content.getvalue()


def _keras() -> Iterator[File]:
    import keras

    keras.utils.set_random_seed(1)
    x, y = _features(2)
    p = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, activation="sigmoid")]).predict(x, verbose=0)
    yield _event("sigmoid.npz", _npz(y_test=y, y_pred=p), y, p[:, 0])
    yield _event("sigmoid.csv", _csv(y_test=y, y_pred=p.ravel()), y, p[:, 0])
    x, y = _features(3)
    prob = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, activation="softmax")]).predict(x, verbose=0)
    one_hot = keras.utils.to_categorical(y, 3)
    yield _several("one-hot.npz", _npz(y_test=one_hot, y_pred=prob), y, prob)
    frame = pd.DataFrame(prob).assign(true=y, predicted=prob.argmax(axis=1), filename=[f"{i}.png" for i in range(N)])
    yield _several("generator.csv", frame.to_csv(index=False).encode(), y, prob)


def _torch() -> Iterator[File]:
    import torch

    torch.manual_seed(1)
    x, y = _features(3)
    with torch.no_grad():
        logits = torch.nn.Linear(4, 3)(torch.tensor(x))
        prob = logits.softmax(dim=1)
    yield _several("softmax.npz", _npz(probs=prob.numpy(), targets=y), y, prob.numpy())
    content = _npz(logits=logits.numpy(), embeddings=x, labels=y)
    yield _several("logits.npz", content, y, prob.numpy(), at_first=False)
    confidence, predicted = prob.max(dim=1)
    right = (predicted.numpy() == y).astype(int)
    content = _csv(label=y, prediction=predicted.numpy(), confidence=confidence.numpy())
    yield _event("top 1.csv", content, right, confidence.numpy())
    yield _several("lists.csv", _csv(target=y, probs=[str(row) for row in prob.tolist()]), y, prob.numpy())


def _transformers() -> Iterator[File]:
    import torch
    import transformers

    torch.manual_seed(1)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "film", "plot"]
    rng = np.random.default_rng(6)
    texts = [" ".join(rng.choice(words[5:], 4)) for _ in range(N)]
    y = np.array(CLASSES)[rng.integers(3, size=N)]
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = transformers.BertConfig(vocab_size=len(words), id2label=dict(enumerate(CLASSES)), **sizes)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vocab.txt"
        path.write_text("\n".join(words))
        tokenizer = transformers.BertTokenizer(str(path))
    model = transformers.BertForSequenceClassification(config).eval()
    classify = transformers.pipeline("text-classification", model=model, tokenizer=tokenizer, device=-1)
    found = classify(texts, top_k=None)
    prob = np.array([[{one["label"]: one["score"] for one in row}[name] for name in CLASSES] for row in found])
    rows = [{"text": text, "label": one, "output": row} for text, one, row in zip(texts, y, found, strict=True)]
    yield _several("pipeline.jsonl", "\n".join(map(json.dumps, rows)).encode(), y, prob, CLASSES)
    best = classify(texts)
    rows = [{"text": t, "gold": one, **row} for t, one, row in zip(texts, y, best, strict=True)]
    right = [int(row["gold"] == row["label"]) for row in rows]
    yield _event("top label.json", json.dumps(rows).encode(), right, [row["score"] for row in rows])
    config.id2label = {0: "LABEL_0", 1: "LABEL_1"}  # as of a model without names
    classify = transformers.pipeline(
        "text-classification",
        model=transformers.BertForSequenceClassification(config).eval(),
        tokenizer=tokenizer,
        device=-1,
    )
    gold = rng.integers(2, size=N)
    found = [{"gold": int(one), **row} for one, row in zip(gold, classify(texts), strict=True)]
    right = [int(row["label"] == f"LABEL_{row['gold']}") for row in found]
    yield _event("numbered.jsonl", "\n".join(map(json.dumps, found)).encode(), right, [row["score"] for row in found])
    with torch.no_grad():
        logits = model(**tokenizer(texts, padding=True, return_tensors="pt")).logits.numpy()
    number = np.array([CLASSES.index(one) for one in y])
    yield _several("trainer.npz", _npz(predictions=logits, label_ids=number), number, prob, at_first=False)


def _datasets() -> Iterator[File]:
    import datasets

    prob = np.random.default_rng(7).dirichlet(np.ones(3), size=N)
    y = _features(3)[1]
    kinds = {"label": datasets.ClassLabel(names=list(CLASSES)), "probs": datasets.Sequence(datasets.Value("float64"))}
    rows = {"text": [f"text {i}" for i in range(N)], "label": y, "probs": prob.tolist()}
    features = datasets.Features({"text": datasets.Value("string"), **kinds})
    table = datasets.Dataset.from_dict(rows, features=features)
    with tempfile.TemporaryDirectory() as folder:
        table.to_parquet(f"{folder}/a.parquet")
        table.to_json(f"{folder}/a.jsonl")
        table.to_csv(f"{folder}/a.csv")
        table.save_to_disk(f"{folder}/disk")
        paths = [*(Path(folder) / f"a.{ending}" for ending in ("parquet", "jsonl", "csv"))]
        paths += Path(folder).glob("disk/*.arrow")
        for path in paths:
            yield _several(path.name, path.read_bytes(), y, prob)


def _pyreadstat() -> Iterator[File]:
    import pyreadstat

    rng = np.random.default_rng(8)
    p = rng.random(N).round(4)
    y = (rng.random(N) < p).astype(int)
    words = ["Yes" if one else "No" for one in y]
    frame = pd.DataFrame({"ID": np.arange(N) + 1, "DIED": y, "RISK": p, "AGE": rng.integers(20, 90, N)})
    with tempfile.TemporaryDirectory() as folder:
        path, labels = Path(folder) / "a", {"DIED": {0: "No", 1: "Yes"}}
        pyreadstat.write_sav(frame, path, variable_value_labels=labels)
        in_words = pyreadstat.read_sav(path, apply_value_formats=True)[0]
        numbers = pyreadstat.read_sav(path)[0]
        spss = File("spss.csv", in_words.to_csv(index=False).encode(), words, {"Yes": p, "No": 1 - p})
        pyreadstat.write_dta(frame, path, variable_value_labels=labels)
        stata = pyreadstat.read_dta(path, apply_value_formats=True)[0]
        pyreadstat.write_xport(frame, path)
        sas = pyreadstat.read_xport(path)[0]
    yield spss
    yield _event("spss numbers.csv", numbers.to_csv(index=False, sep=";", decimal=",").encode(), y, p)
    yield File("stata.csv", stata.to_csv(index=False).encode(), words, {"Yes": p, "No": 1 - p})
    yield _event("sas.csv", sas.to_csv(index=False).encode(), y, p)


LIBRARIES: dict[str, Callable[[], Iterator[File]]] = {
    "xgboost": _xgboost,
    "lightgbm": _lightgbm,
    "keras": _keras,
    "torch": _torch,
    "transformers": _transformers,
    "datasets": _datasets,
    "pyreadstat": _pyreadstat,
}
"""The files of each library, by the name of its package."""
