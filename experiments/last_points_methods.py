"""The update rules of experiments/last-points: SGD and LogAdam as miniqat has them, and methods for the last points of few
bits. All work on flat arrays. `u` are the latent weights of few bits, one array over all layers; `Grid` says where they are
rounded to.

Each method names its paper and says where the paper leaves something open or where we differ."""

import dataclasses
import math

import numpy as np

# A row of experiments/accuracy-results, as keywords of the flags of `train`: docs/low-bits.md.
QUANTIZED = {'weight_bits': 2, 'activation_bits': 2, 'per_channel': True, 'bn_fold': 'late', 'ends_bits': 8, 'sums_bits': 8}


@dataclasses.dataclass
class Grid:
    """Where latent weights are rounded to: scale * integer, with integers from -limit to limit (symmetric, narrow range). Both have
    a number for each weight; the scale is that of its channel."""
    scale: np.ndarray
    limit: np.ndarray

    def integers(self, u):
        """As FakeQuant rounds (docs/graph-json.md): to the nearest, halves upwards."""
        end = self.limit * self.scale
        return np.floor((np.clip(u, -end, end) + end) / self.scale + np.float32(0.5)) - self.limit

    def rounded(self, u):
        return self.integers(u) * self.scale

    def inside(self, u):
        return np.abs(u) <= self.limit * self.scale


class Sgd:
    """optim/sgd.h without Nesterov: v = momentum v + g + decay w, w -= rate v. To the bit what miniqat computes."""

    def __init__(self, decay, momentum=0.9):
        self.decay, self.momentum = decay.astype(np.float32), np.float32(momentum)
        self.velocity = np.zeros_like(self.decay)

    def step(self, w, gradient, rate):
        """`rate`: a number, or one for each weight."""
        self.velocity = self.momentum * self.velocity + (gradient + self.decay * w)
        return w - np.asarray(rate, np.float32) * self.velocity


class LogAdam:
    """optim/log_adam.h: Adam on the logarithms of the ends of ranges."""
    LEAST, STEEPEST, EPSILON = 2.0 ** -110, 1e18, 1e-12

    def __init__(self, size, beta1=0.9, beta2=0.999):
        self.beta1, self.beta2 = beta1, beta2
        self.m, self.v, self.before = (np.zeros(size, np.float32) for _ in range(3))

    def step(self, w, gradient, rate, t):
        self.before = np.where((self.m == 0) & (self.v == 0), np.float32(t - 1), self.before)
        t = np.maximum(1, t - self.before.astype(np.float64))
        slope = np.clip(gradient.astype(np.float64) * w, -self.STEEPEST, self.STEEPEST)
        m, v = self.m.astype(np.float64), self.v.astype(np.float64)
        self.m = (self.beta1 * m + (1 - self.beta1) * slope).astype(np.float32)
        self.v = (self.beta2 * v + (1 - self.beta2) * slope * slope).astype(np.float32)
        m, v = self.m.astype(np.float64), self.v.astype(np.float64)
        product = w * np.exp(-(rate / (1 - self.beta1 ** t)) * m / (np.sqrt(1 / (1 - self.beta2 ** t) * v) + self.EPSILON))
        size = np.abs(product)
        fits = (size <= np.finfo(np.float32).max) & ((size >= np.abs(w)) | (size >= self.LEAST))
        return np.where(fits, product, w).astype(np.float32)


class Method:
    """The baseline: changes nothing. A method overrides what it changes. `STATE` names the arrays that a checkpoint keeps."""
    STATE = ()
    # A teacher's part of the target.
    SHARE = 0.0
    # False: the network computes with what `seen` makes of the weights, which no quantizer rounds.
    ROUNDS = True
    # True: the network scales gradients of activations.
    SCALES = False

    def __init__(self, size, steps, rate):
        """Weights of few bits, training steps, and the schedule's first rate."""
        self.size, self.steps, self.first_rate = size, steps, rate

    def begin(self, u, grid):
        """Before the first step."""

    def begin_epoch(self, network, grid, epoch):
        """Before its first step."""

    def seen(self, u, grid, t):
        """The weights that the network computes step t with."""
        return u

    def gradient(self, g, u, grid):
        """The gradient of latent weights, from that of the straight-through estimator."""
        return g

    def rate(self, scheduled):
        """The rate of latent weights."""
        return scheduled

    def end(self, u, grid, former, t):
        """Latent weights after step t, whose integers were `former` before it."""
        return u


class Transitions(Method):
    """Transition rates (Lee, Jeon, Kim, Ham: "Scheduling weight transitions for quantization-aware training", ICCV
    2025). In step t the share k_t of all quantized weights changes its integer. Its running mean is

        K_t = 0.99 K_{t-1} + 0.01 k_t.

    A schedule gives a target R_t, not a rate. The rate of latent weights follows it,

        U_t = max(0, U_{t-1} + eta (R_t - K_t)),

    and step t + 1 subtracts U_t times the optimizer's direction (here the velocity). Other parameters keep the scheduled rate.

    Open: the first target and eta, which the paper chooses for each network. Here the first steps (100, or a tenth of them all)
    have the scheduled rate, and their mean transition rate is the first target, which falls on a cosine to 0. Where K is twice the
    first target, eta takes half of the first rate away in 100 steps, over which K averages. Weights of 8 bits are not counted."""
    STATE = ('known', 'first', 'own')
    MEMORY = 0.99

    def __init__(self, size, steps, rate):
        super().__init__(size, steps, rate)
        self.known, self.first, self.own = np.zeros(()), np.zeros(()), np.zeros(())
        self.looking = max(1, min(100, steps // 10))

    def target(self, t):
        return float(self.first) * (1 + math.cos(math.pi * min(t / self.steps, 1))) / 2

    def rate(self, scheduled):
        if self.first == 0:
            self.own = np.asarray(float(scheduled))
        return float(self.own)

    def end(self, u, grid, former, t):
        changed = np.mean(grid.integers(u) != former)
        if t <= self.looking:
            self.known = self.known + (changed - self.known) / t
            self.first = self.known if t == self.looking else self.first
            return u
        self.known = self.MEMORY * self.known + (1 - self.MEMORY) * changed
        if self.first > 0:
            speed = 0.5 * self.first_rate / (100 * self.first)
            self.own = np.maximum(0, self.own + speed * (self.target(t) - self.known))
        return u


class Freezing(Method):
    """Iterative freezing (Nagel, Fournarakis, Bondarenko, Blankevoort: "Overcoming oscillations in quantization-aware training",
    ICML 2022). A weight oscillates in step t if its integer changes, and in the other direction than
    at its last change: o_t. This counts how often,

        f_t = m o_t + (1 - m) f_{t-1},

    and a mean of integers goes along, z_t = m w_t + (1 - m) z_{t-1}. Once f_t is above a threshold, the weight is frozen until
    the end at the integer next to z; a change of the scale moves it with its grid. The threshold falls on a cosine, here from 0.1
    to 0.011 with m = 0.01: the authors' published command for 3 bits, since there is none for 2."""
    STATE = ('direction', 'frequency', 'mean', 'frozen', 'at')
    MEMORY, FIRST, LAST = 0.01, 0.1, 0.011

    def begin(self, u, grid):
        self.direction, self.frequency = np.zeros((2, self.size), np.float32)
        self.mean = grid.integers(u).astype(np.float32)
        self.frozen, self.at = np.zeros((2, self.size), np.float32)

    def threshold(self, t):
        return self.LAST + (self.FIRST - self.LAST) * (1 + math.cos(math.pi * min(t / self.steps, 1))) / 2

    def end(self, u, grid, former, t):
        held = self.frozen != 0
        now = np.where(held, self.at, grid.integers(u)).astype(np.float32)
        turn = np.sign(now - former).astype(np.float32)
        oscillates = turn * self.direction < 0
        self.frequency = (self.MEMORY * oscillates + (1 - self.MEMORY) * self.frequency).astype(np.float32)
        self.direction = np.where(turn != 0, turn, self.direction)
        self.mean = (self.MEMORY * now + (1 - self.MEMORY) * self.mean).astype(np.float32)
        caught = ~held & (self.frequency > self.threshold(t))
        self.at = np.where(caught, np.floor(self.mean + np.float32(0.5)), self.at)
        self.frozen = (held | caught).astype(np.float32)
        return np.where(self.frozen != 0, self.at * grid.scale, u)


class Teacher(Method):
    """A teacher of twice the width (Mishra, Marr: "Apprentice", ICLR 2018, scheme C: the teacher is trained before
    and does not change, the student goes on from its own float network). Their weights of the two cross entropies are halves, the
    temperature is 1:

        loss = (1 - s) H(label, student) + s H(teacher, student),  s = 1/2.

    The teacher, in float with its moving statistics, looks at the student's pictures, cropped and mirrored alike."""
    SHARE = 0.5


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


class ScaledGradients(Method):
    """EWGS (Lee, Kim, Ham: "Network quantization with element-wise gradient scaling", CVPR 2021): with weights and grid
    mapped to [0, 1], x and its rounded x_q,

        g_x = g_xq (1 + delta sign(g_xq) (x - x_q)).

    delta of a layer is the mean of the Hessian's diagonal over a large gradient, three standard deviations (not below 0). The trace
    comes from Hutchinson's estimate, E[v H v] with v = +-1. The authors' program estimates every tenth epoch, from three batches;
    we do before each epoch, from three batches with `PROBES` vectors each, all layers at once: products between layers have
    mean 0.

    Two differences. The products H v are differences of gradients at weights moved by `MOVE` of the grid's width to either side,
    since miniqat has no second derivatives. And the paper scales gradients of activations, too: `AllScaledGradients`."""
    STATE = ('delta',)
    PROBES, MOVE = 8, 0.02

    def begin(self, u, grid):
        self.delta = np.zeros(self.size, np.float32)

    def begin_epoch(self, network, grid, epoch):
        draws = np.random.default_rng(epoch)
        width = 2 * grid.limit * grid.scale
        weights = grid.rounded(network.latent())
        layers = network.layers()
        found = np.zeros(len(layers))
        batches = network.next_batches(3)
        for batch in batches:
            middle = network.open_gradient(weights, batch) * width
            trace = np.zeros(self.size)
            for _ in range(self.PROBES):
                v = draws.choice(np.array([-1, 1], np.float32), self.size)
                ends = [network.open_gradient(weights + side * self.MOVE * width * v, batch) for side in (1, -1)]
                trace += v * width * (ends[0] - ends[1]) / (2 * self.MOVE * self.PROBES)
            found += [trace[layer].mean() / (3 * middle[layer].std() + 1e-30) for layer in layers]
        for layer, delta in zip(layers, found / len(batches)):
            self.delta[layer] = max(delta, 0)

    def gradient(self, g, u, grid):
        # Outside of the grid g is 0.
        error = (u - grid.rounded(u)) / (2 * grid.limit * grid.scale)
        return g * (1 + self.delta * np.sign(g) * error)


class AllScaledGradients(ScaledGradients):
    """EWGS for weights and activations. A session differentiates activations inside, by the straight-through estimator. So a step
    has two passes: the first tells the gradient g of each quantizer's input, the second adds delta |g| (x - x_q) to it
    (Network.gradients). Where two quantizers follow each other, the added part of the first has g without that of the second: an
    error of the order of delta squared. delta of a quantizer comes from activations that are moved behind it."""
    SCALES = True

    def begin_epoch(self, network, grid, epoch):
        super().begin_epoch(network, grid, epoch)
        draws, weights, widths = np.random.default_rng(epoch), grid.rounded(network.latent()), network.activation_widths()
        found, batches = np.zeros(len(widths)), network.next_batches(3)
        for batch in batches:
            middle = network.activation_gradients(weights, batch)
            for _ in range(self.PROBES // 2):
                moves = [(self.MOVE * width * (2 * draws.integers(0, 2, g.shape, np.int8) - 1)).astype(np.float32)
                         for g, width in zip(middle, widths)]
                ends = [network.activation_gradients(weights, batch, [side * move for move in moves]) for side in (1, -1)]
                # move (ends[0] - ends[1]) / 2 is v H v, times the square of MOVE's part of the width, summed; delta has the
                # width once, since that of the gradient is in the denominator.
                found += [np.mean(move * (after - before)) / (2 * self.MOVE ** 2 * width * 3 * (g.std() + 1e-30))
                          for move, after, before, g, width in zip(moves, *ends, middle, widths)]
        network.deltas = np.maximum(found / (len(batches) * (self.PROBES // 2)), 0)


class Proximal(Method):
    """PARQ (Jin, Ma, Liu, Gromov, Defazio, Xiao: "PARQ: piecewise-affine regularized quantization", ICML 2025), by its aggregate
    proximal gradient (AProx): latent weights u take the steps, u -= rate g(w), and the network computes with
    w = prox(u). Between two neighbours of the grid with the middle p the proximal map is the line through p of slope
    1 / rho, cut off at both neighbours; beyond the ends of the grid it is the end:

        w = clip(p + (u - p) / rho, lower, upper).

    rho = 1 leaves weights within the grid as they are, rho = 0 rounds. It falls from 1 to 0 as in the authors' program, on a
    mirrored sigmoid of steepness 10 that ends after three quarters of the steps, as theirs for CIFAR-10. g(w) is not cut outside of
    the grid, as in AProx.

    A difference: the paper finds the grid by least squares; here its scale is learned as in all other rows. The derivative with
    respect to the logarithm of the width is that of docs/low-bits.md with w for y: g (w - u) inside, g w outside."""
    ROUNDS = False
    STEEPNESS, END = 10, 0.75

    def inverse_slope(self, t):
        """In step t, which begins with 1."""
        part = (t - 1) / (self.END * self.steps)
        if part >= 1:
            return 0.0

        def sigmoid(x):
            return 1 / (1 + math.exp(self.STEEPNESS * (x - 0.5)))

        return (sigmoid(part) - sigmoid(1)) / (sigmoid(0) - sigmoid(1))

    def seen(self, u, grid, t):
        rho = self.inverse_slope(t)
        if rho == 0:
            return grid.rounded(u)
        x = np.clip(u / grid.scale, -grid.limit, grid.limit)
        lower = np.minimum(np.floor(x), grid.limit - 1)
        middle = lower + np.float32(0.5)
        line = middle + (x - middle) / np.float32(max(rho, 1e-6))
        return np.clip(line, lower, lower + 1) * grid.scale

    @staticmethod
    def of_widths(g, w, u, grid):
        """The derivative with respect to the logarithm of the width, of each weight."""
        return np.where(grid.inside(u), g * (w - u), g * w)


@dataclasses.dataclass
class Row:
    title: str
    method: type
    # Flags of the program that makes the row; None: the script does.
    flags: list | None = None


ROWS = {
    'baseline': Row('baseline', Method),
    'dampened': Row('oscillations dampened, by `train --dampening 0.001`', Method, ['--dampening', '0.001']),
    'transitions': Row('transition rates steer the rate', Transitions),
    'frozen': Row('oscillating weights frozen one by one', Freezing),
    'taught': Row('a teacher of twice the width, half of the target', Teacher),
    'scaled': Row('gradients of weights scaled by the rounding error (EWGS)', ScaledGradients),
    'all-scaled': Row('gradients of activations, too', AllScaledGradients),
    'proximal': Row('proximal gradient of weights towards the grid (PARQ)', Proximal),
}
