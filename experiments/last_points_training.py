"""The training loop of experiments/last-points: a network of few bits in miniqat's Session, which gives loss and gradients, and
updates by the rules of last_points_methods. All else is as in `miniqat train`: the start of learned ranges, batches, estimates of
batch norms. Without a method the weights are those of the program, to the bit."""

import contextlib
import json
import pathlib
import time

import miniqat
import numpy as np

import last_points_methods as methods
from last_points_pictures import BATCH

# The defaults of `train`.
MOMENTUM, RATE_OF_RANGES = 0.9, 0.003
RANGE_BATCHES, ESTIMATE_BATCHES = 16, 100
# Nodes that are added to a training graph.
FACTOR, TARGETS, TOTAL = 'last_points/factor', 'last_points/targets', 'last_points/total'
SHIFT, PULL, MOVE = 'last_points/shift', 'last_points/pull', 'last_points/move'


class Flat:
    """Variables, one behind the other in an array."""

    def __init__(self, nodes):
        self.shapes = {node['name']: tuple(node['attributes']['shape']) for node in nodes}
        self.ends = dict(zip(self.shapes, np.cumsum([int(np.prod(shape)) for shape in self.shapes.values()])))

    def place(self, name):
        end = int(self.ends[name])
        return slice(end - int(np.prod(self.shapes[name])), end)

    def gathered(self, arrays):
        return np.concatenate([np.ravel(array) for array in arrays]).astype(np.float32)

    def of(self, session):
        return self.gathered(session.variable(name) for name in self.shapes)

    def store(self, session, values):
        for name, shape in self.shapes.items():
            session.set_variable(name, values[self.place(name)].reshape(shape))


class Network:
    """A network of few bits at its start, from float variables. The few bits are those of weights with learned ranges."""

    def __init__(self, model, pictures, variables, seed, quantized=None, width=1.0, rounds=True, teacher=None, share=0.0,
                 scales=False):
        self.pictures, self.seed, self.teacher, self.share = pictures, seed, teacher, share
        net = miniqat.make_classifier(model, pictures.training, batch_size=BATCH, width=width)
        self.labels, self.loss = net.add_loss()
        miniqat.create_training_graph(net.graph, **(quantized or methods.QUANTIZED), ranges='auto')
        self.net, self.evaluation = net, net.evaluation()
        self._find_weights()
        self.session = self._session(net.graph)
        self._start(variables)
        if not rounds:
            self.session = self._open_session()
        self.scales, self.deltas = scales, np.zeros(len(self.activations))
        if scales:
            start = self.session.variables()
            self.session = self._session(self._pulled_graph())
            self.session.restore(start, 'by_name')
        self._add_total(self.session.graph)
        # The first passes may not change what the second ones observe.
        self.first_pass = self._session(self.session.graph) if scales else None

    def _session(self, graph):
        return miniqat.Session(graph, seed=self.seed, arithmetic='integer')

    def _find_weights(self):
        """Among the variables that steps change: weights of few bits, and for each of them the ends of its range."""
        nodes = {node['name']: node for node in self.net.graph.nodes()}
        trained = [n for n in nodes.values() if n['op'] == 'Variable' and n['attributes']['trainable']]
        self.weights = Flat([n for n in trained if n['attributes']['update'] == 'additive'])
        self.ends = Flat([n for n in trained if n['attributes']['update'] == 'multiplicative'])
        learned = [n for n in nodes.values() if n['op'] == 'FakeQuant' and n['attributes']['range'] == 'learned']
        self.quantizers = [n for n in learned if nodes[n['inputs'][0].split(':')[0]]['op'] == 'Variable']
        self.activations = [n for n in learned if n not in self.quantizers]
        for node in self.quantizers:
            attributes = node['attributes']
            assert attributes['symmetric'] and attributes['narrow_range'] and not attributes['power_of_two'], node['name']
        index, lower, upper, limit = [], [], [], []
        for node in self.quantizers:
            name, at = node['inputs'][0], [self.ends.place(end) for end in node['inputs'][1:]]
            own = np.arange(self.weights.place(name).start, self.weights.place(name).stop)
            index.append(own)
            for which, place in zip((lower, upper), at):
                which.append(place.start + np.arange(len(own)) % (place.stop - place.start))
            limit.append(np.full(len(own), 2 ** (node['attributes']['bits'] - 1) - 1, np.float32))
        self.index, self.lower, self.upper, self.limit = map(np.concatenate, (index, lower, upper, limit))
        self.sizes = [len(own) for own in index]

    def layers(self):
        """Where each layer's weights are among those of few bits."""
        stops = np.cumsum(self.sizes)
        return [slice(stop - size, stop) for stop, size in zip(stops, self.sizes)]

    def _start(self, variables):
        """Ranges start at least squares, as RangeStart has them (training/train/range_start.h)."""
        missing = [name for name in self.session.restore(variables, 'by_name')['fresh'] if name in self.weights.shapes]
        if missing:
            raise ValueError(f'the network in float has no {missing[0]}')
        calibrated = self._session(self.evaluation.graph)
        calibrated.restore(self.session.variables(), 'by_name')
        batches = self.pictures.batches(self.seed, varies=False)
        count = min(RANGE_BATCHES, self.pictures.steps)
        miniqat.calibrate(calibrated, [{self.evaluation.images: next(batches)[0]} for _ in range(count)])
        for name in self.ends.shapes:
            self.session.set_variable(name, calibrated.variable(name))

    def _shape(self, name):
        return list(self.net.graph.output(name).shape)

    def _pulled_graph(self):
        """With x + shift at the input x of each quantizer of activations, and with the mean of pull (x + shift) added to the loss.
        The gradient of shift is that of x, and that of pull is x over their number. A pull adds to the gradient of x."""
        graph = json.loads(self.net.graph.to_json())
        by_name = {node['name']: node for node in graph['nodes']}
        for i, node in enumerate(self.activations):
            x = node['inputs'][0]
            shape = {'shape': self._shape(x)}
            graph['nodes'] += [
                *({'name': f'{name}/{i}', 'op': 'Placeholder', 'attrs': shape} for name in (SHIFT, PULL)),
                {'name': f'{SHIFT}/{i}/Add', 'op': 'Add', 'inputs': [x, f'{SHIFT}/{i}']},
                {'name': f'{PULL}/{i}/Mul', 'op': 'Mul', 'inputs': [f'{SHIFT}/{i}/Add', f'{PULL}/{i}']},
                {'name': f'{PULL}/{i}/Mean', 'op': 'Mean', 'inputs': [f'{PULL}/{i}/Mul']}]
            by_name[node['name']]['inputs'][0] = f'{SHIFT}/{i}/Add'
        return miniqat.Graph.from_json(json.dumps(graph))

    def _open_session(self, moves=False):
        """A session without the quantizers of few-bit weights: it computes with the weights that it has. With `moves`, what
        quantizers of activations give is moved by placeholders."""
        graph = json.loads(self.net.graph.to_json())
        instead = {node['name']: node['inputs'][0] for node in self.quantizers}
        graph['nodes'] = [node for node in graph['nodes'] if node['name'] not in instead]
        if moves:
            instead |= {node['name']: f'{MOVE}/{i}/Add' for i, node in enumerate(self.activations)}
        for node in graph['nodes']:
            if 'inputs' in node:
                node['inputs'] = [instead.get(name, name) for name in node['inputs']]
        for i, node in enumerate(self.activations if moves else []):
            graph['nodes'] += [{'name': f'{MOVE}/{i}', 'op': 'Placeholder', 'attrs': {'shape': self._shape(node['name'])}},
                               {'name': f'{MOVE}/{i}/Add', 'op': 'Add', 'inputs': [node['name'], f'{MOVE}/{i}']}]
        session = self._session(miniqat.Graph.from_json(json.dumps(graph)))
        session.restore(self.session.variables(), 'by_name')
        return session

    def _add_total(self, graph):
        """Loss times a factor, which is 1: its gradient is the loss. With a teacher the cross entropy of its probabilities p comes
        in: H(p) = H(label) + the mean over pictures of the sum of (label - p) logits."""
        total = graph.output('loss')
        if self.teacher:
            logits = next(node['inputs'][0] for node in graph.nodes() if node['name'] == 'loss')
            targets = graph.add('Placeholder', TARGETS, shape=list(graph.output(logits).shape))
            more = graph.add('Mean', TARGETS + '/mean', graph.add('Mul', TARGETS + '/Mul', [logits, targets]))
            total = graph.add('Add', TARGETS + '/Add', [total, more])
        for i in range(len(self.activations) if self.scales else 0):
            total = graph.add('Add', f'{PULL}/{i}/Add', [total, f'{PULL}/{i}/Mean'])
        graph.add('Mul', TOTAL, [total, graph.add('Placeholder', FACTOR, shape=[])])

    def gradients(self, images, labels):
        """The loss and the gradients of all weights and all ends, of a step in training mode."""
        feeds = {'images': images, 'labels': labels, FACTOR: np.float32(1)}
        if self.teacher:
            p = self.teacher.probabilities(images)
            feeds[TARGETS] = (self.share * p.shape[1] * (np.eye(p.shape[1])[labels] - p)).astype(np.float32)
        loss_alone = self._pull(feeds) if self.scales else None
        wanted = [FACTOR, *self.weights.shapes, *self.ends.shapes]
        loss, *rest = self.session.gradients(TOTAL, wanted, feeds, training=True)
        loss = loss if loss_alone is None else loss_alone
        count = len(self.weights.shapes)
        return float(loss), self.weights.gathered(rest[:count]), self.ends.gathered(rest[count:])

    def _pull(self, feeds):
        """Adds the feeds that scale gradients of activations, from those of a first pass. Returns the loss."""
        count = len(self.activations)
        zeros = [np.zeros(self._shape(node['inputs'][0]), np.float32) for node in self.activations]
        feeds |= {f'{name}/{i}': zeros[i] for name in (SHIFT, PULL) for i in range(count)}
        self.first_pass.restore(self.session.variables(), 'by_name')
        wanted = [f'{name}/{i}' for name in (SHIFT, PULL) for i in range(count)]
        loss, *found = self.first_pass.gradients(TOTAL, [FACTOR, *wanted], feeds, training=True)
        for i, (g, x, node) in enumerate(zip(found[:count], found[count:], self.activations)):
            low, high = self.ends_of(node)
            error = x * x.size - miniqat.fake_quant(x * x.size, low, high, bits=node['attributes']['bits'])
            feeds[f'{PULL}/{i}'] = (g.size * self.deltas[i] / (high - low) * np.abs(g) * error).astype(np.float32)
        return loss

    def ends_of(self, node):
        """The range of a quantizer of activations."""
        return (float(self.session.variable(name)) for name in node['inputs'][1:])

    def grid(self, ends):
        return methods.Grid(ends[self.upper] / self.limit, self.limit)

    # What methods ask for before an epoch.

    def latent(self):
        return self.weights.of(self.session)[self.index]

    def next_batches(self, count):
        batches = self.pictures.batches(self.seed, self.session.step)
        with contextlib.closing(batches):
            return [next(batches) for _ in range(count)]

    def open_gradient(self, weights, batch):
        """The gradient of the loss at these weights of few bits, which nothing rounds."""
        return self.weights.gathered(self._gradients_at(weights, batch, [node['inputs'][0] for node in self.quantizers]))

    def activation_gradients(self, weights, batch, moves=None):
        """Gradients of what quantizers of activations give, at these weights, with what they give moved."""
        return self._gradients_at(weights, batch, [f'{MOVE}/{i}' for i in range(len(self.activations))], moves)

    def activation_widths(self):
        return [high - low for low, high in map(self.ends_of, self.activations)]

    def _gradients_at(self, weights, batch, names, moves=None):
        if not hasattr(self, 'opened'):
            self.opened = self._open_session(moves=self.scales)
        values = self.weights.of(self.session)
        self.opened.restore(self.session.variables(), 'by_name')
        values[self.index] = weights
        self.weights.store(self.opened, values)
        feeds = dict(zip(('images', 'labels'), batch))
        if self.scales:
            moves = moves or [np.zeros(self._shape(node['name']), np.float32) for node in self.activations]
            feeds |= {f'{MOVE}/{i}': move for i, move in enumerate(moves)}
        return self.opened.gradients('loss', names, feeds, training=True)

    # The end.

    def accuracy(self, variables):
        """On the pictures that are held out. `variables`: of the quantized network, with latent weights."""
        session = self._session(self.evaluation.graph)
        session.restore({name: variables[name] for name in session.variables()}, 'variables')
        return miniqat.evaluate(session, self.evaluation, self.pictures.held).accuracy

    def estimated(self, variables):
        """With statistics of batch norms from 100 batches: --reestimate 100 (training/calibrate/batch_norm_statistics.h)."""
        graph = self.net.graph
        norms = [node for node in graph.nodes() if node['op'] == 'BatchNorm']
        rows = [np.prod(graph.output(node['inputs'][0]).shape[:-1]) for node in norms]
        observed = [n for n in graph.nodes() if n['op'] == 'FakeQuant' and n['attributes']['range'] == 'last_value']
        fetches = [*(f'{node["name"]}:{k}' for node in norms for k in (1, 2)), *(node['name'] for node in observed)]
        # Not arithmetic of integers: the program estimates without.
        session = miniqat.Session(graph, seed=self.seed)
        batches, seen = self.pictures.batches(self.seed), []
        for _ in range(min(ESTIMATE_BATCHES, self.pictures.steps)):
            session.restore({name: variables[name] for name in session.variables()}, 'variables')
            statistics = session.run(fetches, {'images': next(batches)[0]}, training=True)[:2 * len(norms)]
            seen.append([one.astype(np.float64) for one in statistics])
        # A step observes ranges of weights before its update.
        estimated = variables | {end: session.variable(end).copy() for node in observed for end in node['inputs'][1:]}
        for k, (node, count) in enumerate(zip(norms, rows)):
            means, variances = (np.array([one[2 * k + part] for one in seen]) for part in (0, 1))
            total = count * len(seen)
            variance = ((variances + (means - means.mean(0)) ** 2).sum(0) * count / (total - 1)).astype(np.float32)
            former = variables[node['inputs'][4]]
            estimated[node['inputs'][3]] = means.mean(0).astype(np.float32)
            estimated[node['inputs'][4]] = np.where(variance <= 1e-3 * node['attributes']['epsilon'], former, variance)
        return estimated


class FloatNetwork:
    """A teacher."""

    def __init__(self, model, pictures, variables, width=2.0):
        net = miniqat.make_classifier(model, pictures.training, batch_size=BATCH, width=width)
        miniqat.turn_to_evaluation(net.graph)
        self.net, self.session = net, miniqat.Session(net.graph)
        self.session.restore(variables, 'variables')

    def probabilities(self, images):
        return methods.softmax(self.session.run(self.net.logits, {self.net.images: images}))

    def accuracy(self, pictures):
        return miniqat.evaluate(self.session, self.net, pictures).accuracy


class Training:
    """The steps of one run. Between epochs its state is in `folder`, if there is one."""
    OWN = 'last_points:'

    def __init__(self, network, method, epochs, rate, decay, folder=None):
        steps = network.pictures.steps
        self.network, self.epochs, self.rate, self.folder = network, epochs, rate, folder and pathlib.Path(folder)
        self.schedule = miniqat.Schedule('cosine', total_steps=epochs * steps)
        self.method = method(len(network.index), epochs * steps, rate)
        decayed = np.concatenate([np.full(int(np.prod(shape)), decay if len(shape) > 1 else 0)
                                  for shape in network.weights.shapes.values()])
        self.sgd, self.log_adam = methods.Sgd(decayed, MOMENTUM), methods.LogAdam(len(network.ends.of(network.session)))
        self.w, self.ends = network.weights.of(network.session), network.ends.of(network.session)
        self.done, self.seconds = 0, 0.0
        self.method.begin(self.latent, self.grid)

    @property
    def latent(self):
        return self.w[self.network.index]

    @property
    def grid(self):
        return self.network.grid(self.ends)

    def _arrays(self):
        """What a checkpoint has beside the session, by name: an object and its attribute."""
        return {'w': (self, 'w'), 'ends': (self, 'ends'), 'velocity': (self.sgd, 'velocity'), 'm': (self.log_adam, 'm'),
                'v': (self.log_adam, 'v'), 'before': (self.log_adam, 'before'),
                **{f'method/{name}': (self.method, name) for name in self.method.STATE}}

    def save(self):
        own = {self.OWN + name: np.asarray(getattr(*place)) for name, place in self._arrays().items()}
        own[self.OWN + 'epochs'] = np.asarray([self.done], np.int64)
        own[self.OWN + 'seconds'] = np.asarray([self.seconds])
        miniqat.write_safetensors(self.folder / 'checkpoint.safetensors', self.network.session.checkpoint() | own)

    def resume(self):
        """False where nothing was begun."""
        file = self.folder / 'checkpoint.safetensors'
        if not file.exists():
            return False
        found = miniqat.read_safetensors(file)
        self.network.session.restore({name: array for name, array in found.items() if not name.startswith(self.OWN)}, 'exact')
        for name, place in self._arrays().items():
            setattr(*place, found[self.OWN + name])
        self.done, self.seconds = int(found[self.OWN + 'epochs'][0]), float(found[self.OWN + 'seconds'][0])
        return True

    def _show(self, t):
        """The session gets the weights that step t computes with."""
        shown = self.w.copy()
        shown[self.network.index] = self.method.seen(self.latent, self.grid, t)
        self.network.weights.store(self.network.session, shown)
        self.network.ends.store(self.network.session, self.ends)
        return shown

    def step(self, images, labels):
        """The loss, and the share of weights whose integer it changes."""
        network, method, t = self.network, self.method, self.network.session.step + 1
        former_grid, u = self.grid, self.latent
        former, shown = former_grid.integers(u), None
        if not method.ROUNDS:
            shown = self._show(t)[network.index]
        loss, g, d_ends = network.gradients(images, labels)
        own = g[network.index]
        if not method.ROUNDS:
            self._put_widths(d_ends, method.of_widths(own, shown, u, former_grid))
        g[network.index] = method.gradient(own, u, former_grid)
        scheduled = self.rate * self.schedule.factor(t)
        rates = np.full(len(self.w), scheduled)
        rates[network.index] = method.rate(scheduled)
        self.w = self.sgd.step(self.w, g, rates)
        self.ends = self.log_adam.step(self.ends, d_ends, RATE_OF_RANGES * self.schedule.factor(t), t)
        grid = self.grid
        u = method.end(self.latent, grid, former, t).astype(np.float32)
        self.w[network.index] = u
        if not np.isfinite(loss + self.w.sum() + self.ends.sum()):
            raise miniqat.NonFiniteLoss(f'step {t} has a loss of {loss}')
        if method.ROUNDS:
            self._show(t + 1)
        return loss, float(np.mean(grid.integers(u) != former))

    def _put_widths(self, d_ends, derivatives):
        """Both ends of a symmetric range get half of the derivative (docs/low-bits.md, "Learned ranges")."""
        for which in (self.network.lower, self.network.upper):
            sums = np.bincount(which, derivatives, len(d_ends))
            own = np.unique(which)
            d_ends[own] = sums[own] / (2 * self.ends[own])

    def run(self, report=lambda line: None):
        """All epochs that are left."""
        network, steps = self.network, self.network.pictures.steps
        for epoch in range(self.done, self.epochs):
            begun = time.monotonic()
            self.method.begin_epoch(network, self.grid, epoch)
            with contextlib.closing(network.pictures.batches(network.seed, network.session.step)) as batches:
                seen = np.array([self.step(*next(batches)) for _ in range(steps)])
            self.done, self.seconds = epoch + 1, self.seconds + time.monotonic() - begun
            if self.folder:
                self.save()
            loss, changed = seen.mean(0)
            report(f'epoch {epoch + 1} of {self.epochs}: loss {loss:.4f}, {100 * changed:.3f}% of integers change in a step, '
                   f'{self.seconds:.0f} s')

    def variables(self):
        """Variables of the quantized network, with latent weights."""
        self.network.weights.store(self.network.session, self.w)
        self.network.ends.store(self.network.session, self.ends)
        return {name: array.copy() for name, array in self.network.session.variables().items()}
