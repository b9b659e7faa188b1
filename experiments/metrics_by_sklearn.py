"""What scikit-learn says of small tables of numbers: writes tests/training/task/metrics_by_sklearn.txt, which
tests/training/task/metrics_test.cpp compares with training/task/metrics.h.

    python3 -m venv venv && venv/bin/pip install scikit-learn==1.7.2
    venv/bin/python experiments/metrics_by_sklearn.py

A line is a key and numbers; "case NAME" begins a case."""

import pathlib
import random

import numpy as np
import sklearn
from sklearn import metrics

VERSION = "1.7.2"
TABLE = pathlib.Path(__file__).resolve().parent.parent / "tests/training/task/metrics_by_sklearn.txt"
lines = []


def say(key, *numbers):
    lines.append(" ".join([key, *(repr(float(n)) if isinstance(n, float) else str(n) for n in numbers)]))


def corners(negatives, positives):
    """The places of the corners of a line through whole numbers."""
    kept = []
    for i in range(len(negatives)):
        while len(kept) >= 2:
            (x0, y0), (x1, y1), (x2, y2) = ((int(negatives[k]), int(positives[k])) for k in (*kept[-2:], i))
            if (x1 - x0) * (y2 - y1) != (x2 - x1) * (y1 - y0):
                break
            kept.pop()
        kept.append(i)
    return kept


def detection(name, scores, labels, threshold):
    say("case", name)
    say("scores", *map(float, scores))
    say("labels", *labels)
    say("roc_auc", float(metrics.roc_auc_score(labels, scores)))
    for most in (0.01, 0.1, 0.35, 0.5):
        say("partial_roc_auc", most, float(metrics.roc_auc_score(labels, scores, max_fpr=most)))
    false_rates, true_rates, thresholds = metrics.roc_curve(labels, scores, drop_intermediate=False)
    counts = [np.rint(rates * labels.count(value)).astype(int) for rates, value in ((false_rates, 0), (true_rates, 1))]
    for i in corners(*counts):
        say("roc", float(false_rates[i]), float(true_rates[i]), float(thresholds[i]))
    found = [int(score >= threshold) for score in scores]
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(labels, found, average="binary", zero_division=np.nan)
    say("found", threshold, float(precision), float(recall), float(f1))


def regression(name, predictions, targets):
    say("case", name)
    say("predictions", *map(float, predictions))
    say("targets", *map(float, targets))
    say("mean_squared_error", float(metrics.mean_squared_error(targets, predictions)))
    say("mean_absolute_error", float(metrics.mean_absolute_error(targets, predictions)))
    say("r_squared", float(metrics.r2_score(targets, predictions)))


def classes(name, logits, labels):
    say("case", name)
    say("logits", *map(float, np.ravel(logits)))
    say("classes", *labels)
    for k in (1, 2, 5):
        say("top_k_accuracy", k, float(metrics.top_k_accuracy_score(labels, logits, k=k, labels=range(len(logits[0])))))


def main():
    if sklearn.__version__ != VERSION:
        raise SystemExit(f"scikit-learn is {sklearn.__version__}, not {VERSION}")
    chance = random.Random(57)
    labels = [int(chance.random() < 0.4) for _ in range(60)]
    detection("distinct scores", [chance.gauss(label, 1) for label in labels], labels, 0.5)
    detection("ties", [float(round(chance.gauss(2 * label, 2))) for label in labels], labels, 1.0)
    detection("few levels", [float(chance.randrange(3) - label) for label in labels], labels, 0.0)
    detection("all scores equal", [0.25] * 20, labels[:20], 0.25)
    detection("perfect", [2.0 * label + chance.random() for label in labels], labels, 1.5)
    detection("reversed", [-2.0 * label - chance.random() for label in labels], labels, -1.0)
    detection("one of each", [0.5, 0.75], [0, 1], 0.6)
    detection("one of each, reversed", [0.75, 0.5], [0, 1], 0.6)
    detection("one positive", [chance.random() for _ in range(30)], [0] * 17 + [1] + [0] * 12, 0.9)
    detection("one negative", [chance.random() for _ in range(30)], [1] * 17 + [0] + [1] * 12, 0.1)
    detection("none found", [chance.random() for _ in range(10)], [0, 1] * 5, 2.0)
    targets = [chance.gauss(5, 3) for _ in range(40)]
    regression("close predictions", [t + chance.gauss(0, 0.5) for t in targets], targets)
    regression("worse than the mean", [5 - t for t in targets], targets)
    regression("far from 0", [1e6 + t + chance.gauss(0, 1) for t in targets], [1e6 + t for t in targets])
    regression("perfect predictions", targets, targets)
    regression("two examples", [1.0, 4.0], [2.0, 3.0])
    logits = [[chance.gauss(0, 1) for _ in range(7)] for _ in range(30)]
    classes("seven classes", logits, [chance.randrange(7) for _ in range(30)])
    TABLE.write_text(f"# Written by experiments/metrics_by_sklearn.py with scikit-learn {VERSION}.\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
