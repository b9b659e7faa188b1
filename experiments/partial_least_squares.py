"""Partial least squares with one target (NIPALS; Wold, Sjostrom and Eriksson 2001, "PLS-regression: a basic tool of
chemometrics"), without any library: the baseline for spectra."""


def standardised(rows, means, deviations):
    return [[(x - m) / d for x, m, d in zip(row, means, deviations)] for row in rows]


def moments(columns):
    means = [sum(column) / len(column) for column in columns]
    return means, [(sum((x - m) ** 2 for x in column) / len(column)) ** 0.5 or 1 for column, m in zip(columns, means)]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


class PartialLeastSquares:
    def __init__(self, rows, targets, components):
        self.means, self.deviations = moments(list(zip(*rows)))
        self.offset = sum(targets) / len(targets)
        x, y = standardised(rows, self.means, self.deviations), [t - self.offset for t in targets]
        self.steps = []
        for _ in range(components):
            weights = [dot(column, y) for column in zip(*x)]
            norm = dot(weights, weights) ** 0.5
            if norm == 0:
                break
            weights = [w / norm for w in weights]
            scores = [dot(row, weights) for row in x]
            size = dot(scores, scores)
            loadings = [dot(column, scores) / size for column in zip(*x)]
            coefficient = dot(y, scores) / size
            x = [[v - s * p for v, p in zip(row, loadings)] for row, s in zip(x, scores)]
            y = [v - coefficient * s for v, s in zip(y, scores)]
            self.steps.append((weights, loadings, coefficient))

    def predict(self, rows):
        """With 1, 2, ... components: a list of predictions each."""
        x = standardised(rows, self.means, self.deviations)
        predicted, all_of_them = [self.offset] * len(rows), []
        for weights, loadings, coefficient in self.steps:
            scores = [dot(row, weights) for row in x]
            x = [[v - s * p for v, p in zip(row, loadings)] for row, s in zip(x, scores)]
            predicted = [v + coefficient * s for v, s in zip(predicted, scores)]
            all_of_them.append(predicted)
        return all_of_them


def r_squared(predicted, targets):
    mean = sum(targets) / len(targets)
    return 1 - sum((p - t) ** 2 for p, t in zip(predicted, targets)) / sum((t - mean) ** 2 for t in targets)


def best_components(rows, targets, most, folds=5):
    """By cross-validation within the rows."""
    errors = [0.0] * most
    for fold in range(folds):
        kept = [i for i in range(len(rows)) if i % folds != fold]
        held = [i for i in range(len(rows)) if i % folds == fold]
        model = PartialLeastSquares([rows[i] for i in kept], [targets[i] for i in kept], most)
        for k, predicted in enumerate(model.predict([rows[i] for i in held])):
            errors[k] += sum((p - targets[i]) ** 2 for p, i in zip(predicted, held))
    return 1 + errors.index(min(errors))


def read_series(path):
    """Numbers and targets of a univariate .ts file."""
    lines = [line for line in path.read_text().splitlines() if line.strip() and line[0] not in '#@']
    pairs = [line.rsplit(':', 1) for line in lines]
    return [[float(x) for x in numbers.split(',')] for numbers, _ in pairs], [float(target) for _, target in pairs]


def score(train, test, most=20):
    """R^2 on the file `test`; the number of components is chosen within `train`."""
    rows, targets = read_series(train)
    held, wanted = read_series(test)
    model = PartialLeastSquares(rows, targets, best_components(rows, targets, most))
    return r_squared(model.predict(held)[-1], wanted)
