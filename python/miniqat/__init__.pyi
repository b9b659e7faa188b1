"""Quantization-aware training: graphs that are rewritten in place, trained on NumPy arrays, and turned into integers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

_Path = str | PathLike[str]
_Tensor = Output | str
_Fed = ArrayLike | Bytes
_Feeds = dict[_Tensor, _Fed] | dict[_Tensor, ArrayLike] | dict[str, _Fed] | dict[str, ArrayLike] | dict[Output, _Fed] | dict[Output, ArrayLike]
_Arrays = dict[str, ArrayLike] | dict[str, NDArray[Any]]
_Ranges = dict[str, list[tuple[float, float]]]

__version__: str

class Error(RuntimeError):
    """A failure, in the words of the program."""
class NonFiniteLoss(Error):
    """The loss of a step was NaN or infinite. Nothing of the step was kept."""
class NonFiniteUpdate(NonFiniteLoss):
    """A gradient or an updated variable was NaN or infinite. Nothing of the step was kept."""
class NotQuantized(Error):
    """A tensor lacks the range that conversion to integers needs."""
class UsageError(Error):
    """Settings that cannot be."""

class Output:
    """A tensor of a graph, by its name. It is looked up at each use: a rewrite may remove nodes."""
    @property
    def graph(self) -> Graph:
        """The graph."""
    @property
    def name(self) -> str:
        """"node" or, for any output but the first, "node:k"."""
    @property
    def shape(self) -> tuple[int, ...]:
        """The extents, outermost first."""
    @property
    def dtype(self) -> str:
        """"float32" or "int32"."""
    def __repr__(self) -> str: ...

class Graph:
    """A network: nodes with unique names. Define it first, run it later (Session)."""
    def __init__(self) -> None:
        """An empty graph."""
    @staticmethod
    def from_json(text: str) -> Graph:
        """Reads graph JSON (docs/graph-json.md)."""
    def to_json(self) -> str:
        """The graph as graph JSON: the bytes that the program writes."""
    def add(self, op: str, name: str, inputs: _Tensor | Sequence[_Tensor] = (), **kwargs: Any) -> Output:
        """Adds a node of the type `op` of graph JSON and returns its first output. Keywords are the attributes of graph
        JSON: add("Conv2D", "conv1/Conv2D", [x, w], strides=[2, 2], padding="SAME"), or a loss,
        add("Huber", "loss", [y, wanted], delta=0.5)."""
    def conv1d(self, name: str, x: _Tensor, filter: _Tensor, stride: int = 1, padding: str = "SAME", dilation: int = 1,
               pads: Sequence[int] = [0, 0]) -> Output:
        """Adds a convolution over x, [n, steps, channels], and returns [n, steps', channels']. The filter is
        [k, 1, in, out], pads are the steps before and after with padding "EXPLICIT". The node is a Conv2D over images
        of width 1, between two Reshapes."""
    def depthwise_conv1d(self, name: str, x: _Tensor, filter: _Tensor, stride: int = 1, padding: str = "SAME",
                         dilation: int = 1, pads: Sequence[int] = [0, 0]) -> Output:
        """conv1d of every channel by itself: the filter is [k, 1, in, multiplier]."""
    def max_pool1d(self, name: str, x: _Tensor, window: int = 2, stride: int = 0, padding: str = "VALID",
                   pads: Sequence[int] = [0, 0]) -> Output:
        """Adds a pool over x, [n, steps, channels]: the largest number of each window. Stride 0: as the window."""
    def avg_pool1d(self, name: str, x: _Tensor, window: int = 2, stride: int = 0, padding: str = "VALID",
                   pads: Sequence[int] = [0, 0]) -> Output:
        """max_pool1d with the mean of each window."""
    def output(self, name: str) -> Output:
        """The output "node" or "node:k"."""
    @property
    def outputs(self) -> list[Output]:
        """The tensors that the graph is about: logits, say."""
    @outputs.setter
    def outputs(self, wanted: _Tensor | Sequence[_Tensor]) -> None: ...
    def nodes(self) -> list[dict[str, Any]]:
        """A dictionary with name, op, inputs and attributes of each node, producers first."""
    def clone(self) -> Graph:
        """A copy."""
    def __len__(self) -> int:
        """The number of nodes."""
    def __repr__(self) -> str: ...

class Bytes:
    """Bytes that stand for numbers: a value in `feeds` for a placeholder of float32. A byte means (byte - zero_point) * scale,
    and the results have the bits that feeding these numbers gives."""
    def __init__(self, array: ArrayLike, scale: float = 0.00392156862745098, zero_point: int = 0) -> None:
        """An array of uint8 in the placeholder's shape, used without a copy if it is C-contiguous."""
    @property
    def array(self) -> NDArray[np.uint8]:
        """The bytes."""
    @property
    def scale(self) -> float:
        """The distance of two bytes' numbers."""
    @property
    def zero_point(self) -> int:
        """The byte of 0."""

class Session:
    """Runs a graph, which may be rewritten between two calls, and holds its variables. After a rewrite
    (create_training_graph(), create_eval_graph()) the next call runs the rewritten graph: variables keep their values by
    name, new ones begin with their initial values. A copy made before, Graph.clone(), keeps the float network."""
    def __init__(self, graph: Graph, seed: int = 1, backend: Literal["fast", "reference"] = "fast",
                 precision: Literal["float32", "float64"] = "float32",
                 arithmetic: Literal["simulated", "integer"] = "simulated",
                 rounding: Literal["none", "bfloat16-gradients", "bfloat16", "int8-gradients"] = "none") -> None:
        """backend: "fast" or "reference", the naive loops; precision "float64" needs the latter. arithmetic, of the
        fast backend: "integer" multiplies the integers of quantized layers where that is faster. rounding, in training
        steps: "bfloat16-gradients" and "int8-gradients" round the output's gradient of layers that multiply integers
        (with arithmetic "integer"), "bfloat16" also both factors of other large products. They need a processor with
        AVX-512 BF16 or AMX; int8 one with AVX-512 VNNI or AMX. Same seed, number of threads and machine: the same bits."""
    @overload
    def run(self, fetches: _Tensor, feeds: _Feeds = {}, training: bool = False) -> NDArray[Any]:
        """The values of an output, or a list of those of several. `feeds`: arrays or Bytes by output or name. With
        `training` batch statistics, observers and dropout act as in a step, and updated variables are kept."""
    @overload
    def run(self, fetches: Sequence[_Tensor], feeds: _Feeds = {}, training: bool = False) -> list[NDArray[Any]]: ...
    def gradients(self, of: _Tensor, targets: _Tensor | Sequence[_Tensor], feeds: _Feeds = {},
                  training: bool = False) -> list[NDArray[Any]]:
        """The gradients of (the sum of) an output with respect to outputs of Variables and Placeholders."""
    def train_step(self, loss: _Tensor, optimizer: Optimizer, feeds: _Feeds) -> float:
        """One step of training: forward, backward, optimizer. Returns the loss. Raises NonFiniteLoss; nothing of that step
        is kept then."""
    @property
    def graph(self) -> Graph:
        """The graph that it runs."""
    @property
    def step(self) -> int:
        """Completed training steps."""
    @property
    def quantization_step(self) -> int:
        """Completed training steps since the graph first had an op with a delay."""
    @quantization_step.setter
    def quantization_step(self, step: int) -> None: ...
    def variable(self, name: str) -> NDArray[Any]:
        """A read-only array over the variable's memory: later steps show in it. Copy what is to stay."""
    def variables(self) -> dict[str, NDArray[Any]]:
        """variable() of all by name, op states ("<node>/<state>") included."""
    def set_variable(self, name: str, value: ArrayLike) -> None:
        """Copies an array of the variable's shape into it."""
    def checkpoint(self) -> dict[str, NDArray[Any]]:
        """All that training needs to go on, as copies by name: variables, the optimizer's state, the counters."""
    def save(self, path: _Path) -> None:
        """Writes the checkpoint as a .safetensors file, as the program does."""
    def restore(self, source: _Path | _Arrays, mode: Literal["exact", "variables", "by_name"] = "exact") -> dict[str, list[str]]:
        """Takes a .safetensors file or a dictionary of arrays. mode: "exact", to go on with a training; "variables", to
        evaluate; "by_name", what fits, as the start of another training. Returns the lists of names "restored", "fresh" and
        "unused"."""

class Schedule:
    """The factor on the learning rate in each step."""
    def __init__(self, kind: Literal["constant", "step", "exponential", "cosine"] = "constant", warmup_steps: int = 0,
                 every: int = 0, factor: float = 0.1, total_steps: int = 0, floor: float = 0.0) -> None:
        """kind: "constant"; "step" or "exponential" (the rate falls by `factor` in `every` steps); "cosine" (to `floor`
        behind step `total_steps`). In the first `warmup_steps` it rises."""
    def factor(self, step: int) -> float:
        """The factor in that step; 1 is the first."""

class Optimizer:
    """How gradients change variables. Its state lives in the session."""
    def learning_rate(self, step: int) -> float:
        """The rate in that step; 1 is the first."""

class Sgd(Optimizer):
    """Stochastic gradient descent with momentum."""
    def __init__(self, learning_rate: float = 0.01, momentum: float = 0.0, nesterov: bool = False, weight_decay: float = 0.0,
                 decay_all: bool = False, range_learning_rate: float = 0.003, schedule: Schedule = ...) -> None:
        """`range_learning_rate` is that of learned ranges. `weight_decay` leaves biases out unless `decay_all`."""

class Adam(Optimizer):
    """Adam with L2 weight decay."""
    def __init__(self, learning_rate: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
                 weight_decay: float = 0.0, decay_all: bool = False, range_learning_rate: float = 0.003,
                 schedule: Schedule = ...) -> None:
        """`range_learning_rate` is that of learned ranges. `weight_decay` leaves biases out unless `decay_all`."""

class Grid:
    """real = scale * (integer - zero_point), for integers from quant_min to quant_max."""
    @property
    def scale(self) -> float:
        """The step."""
    @property
    def zero_point(self) -> float:
        """The integer of 0."""
    @property
    def quant_min(self) -> float:
        """The least integer."""
    @property
    def quant_max(self) -> float:
        """The greatest integer."""
    @property
    def min(self) -> float:
        """The least number on the grid."""
    @property
    def max(self) -> float:
        """The greatest number on the grid."""
    def __repr__(self) -> str: ...

class Dataset:
    """Pictures as bytes, [n, h, w, c], or numbers, [n, ...], and what is to be said of them."""
    def __init__(self, images: ArrayLike, labels: ArrayLike, classes: int | None = None, scale: float = 0.00392156862745098,
                 zero_point: int = 0, class_names: Sequence[str] = []) -> None:
        """Copies of the arrays. Pictures are bytes, floats in [0, 1] (1 becomes the byte 255; a warning says what rounding
        costs) or bools, [n, h, w, c] or [n, h, w]. Labels are integers, [n], or one-hot rows, [n, classes]. A pixel is
        (byte - zero_point) * scale."""
    @staticmethod
    def of_numbers(x: ArrayLike, y: ArrayLike | None = None, answers: Literal["auto", "classes", "targets"] = "auto",
                   class_names: Sequence[str] = []) -> Dataset:
        """Copies of numbers, [n, features], [n, steps, channels] or [n, h, w, channels], as they are, and of what is to
        be predicted: None, classes (integers, [n]), numbers (floats, [n] or [n, k]) or several labels (integers 0 and 1,
        [n, k]). answers: "classes" or "targets" where both are possible."""
    def standardised(self, like: Dataset | None = None) -> Dataset:
        """A copy of numbers, and of numbers to predict, as (x - mean) / std of each channel: with their own means and
        deviations, or with those of another data set, the training part of a test part."""
    @property
    def images(self) -> NDArray[Any]:
        """[n, h, w, c] uint8 of pictures, [n, ...] float32 of numbers; read-only."""
    @property
    def labels(self) -> NDArray[np.int32] | None:
        """[n] int32, read-only; None without classes."""
    @property
    def targets(self) -> NDArray[np.float32] | None:
        """[n, k] float32, read-only: numbers to predict, or labels of 0 and 1. None without."""
    @property
    def mean(self) -> NDArray[np.float32] | None:
        """What numbers were standardised with, for each channel; None where they are as they were given."""
    @property
    def std(self) -> NDArray[np.float32] | None:
        """The deviations to these means."""
    @property
    def target_mean(self) -> NDArray[np.float32] | None:
        """What targets were standardised with."""
    @property
    def target_std(self) -> NDArray[np.float32] | None:
        """The deviations to these means."""
    @property
    def classes(self) -> int:
        """The number of classes; 0 without."""
    @property
    def class_names(self) -> list[str]:
        """One for each class, if the data names them."""
    @property
    def scale(self) -> float:
        """Of a byte: the input's grid."""
    @property
    def zero_point(self) -> int:
        """The byte of 0."""
    def __len__(self) -> int:
        """The number of examples."""
    def __repr__(self) -> str: ...

class Loader:
    """Endless shuffled batches, prepared ahead by a thread: an iterator over (images, labels), float32 and int32; in the
    place of labels the targets, float32, or None, as the data have them. Sounds that load() was asked to vary (shift_ms, say)
    are varied anew in each batch. Batch i depends on the data set, the options and i alone."""
    def __init__(self, dataset: Dataset, batch_size: int = 128, shuffle: bool = True, seed: int = 1, first_batch: int = 0) -> None:
        """An epoch is batches_per_epoch batches; examples left over sit it out."""
    @property
    def batches_per_epoch(self) -> int:
        """Whole batches of the data set."""
    def __iter__(self) -> Iterator[tuple[NDArray[np.float32], Any]]: ...
    def __next__(self) -> tuple[NDArray[np.float32], Any]: ...

class Classifier:
    """A network with its ends, and what it learns."""
    @property
    def graph(self) -> Graph:
        """The graph."""
    @property
    def images(self) -> Output:
        """The placeholder of the pictures, [n, h, w, c] float32, or of other examples, [n, ...]."""
    @property
    def logits(self) -> Output:
        """[n, classes], the graph's first output; of other tasks numbers, [n, ...]."""
    @property
    def task(self) -> str:
        """"classify", "regress", "reconstruct" or "multilabel" (docs/tasks.md)."""
    def add_loss(self, label_smoothing: float = 0.0, class_weights: Sequence[float] = [],
                 huber: float = 0.0) -> tuple[Any, Output]:
        """Adds the loss of the task: (labels, loss). Of classes a placeholder for labels, [n] int32, and the mean cross
        entropy, where a picture counts as much as the weight of its class says. Of other tasks a placeholder for targets,
        float32, or None where the input itself is the target; errors of numbers above huber, if that is not 0, count in
        proportion instead of squared."""
    def evaluation(self) -> Classifier:
        """A copy for evaluation, without loss, of a graph that create_training_graph() has rewritten. Its variables have
        the same names."""
    def without_loss(self) -> Classifier:
        """A copy without the loss."""

class IntegerModel:
    """An integer-only model: what convert() makes."""
    @staticmethod
    def from_bytes(content: bytes) -> IntegerModel:
        """Reads the bytes of a .miniqat file."""
    @staticmethod
    def read(path: _Path) -> IntegerModel:
        """Reads a .miniqat file."""
    @property
    def name(self) -> str:
        """Its name, for messages and comments."""
    @property
    def class_names(self) -> list[str]:
        """The names of the classes, labels or numbers, if they are known."""
    @class_names.setter
    def class_names(self, names: Sequence[str]) -> None: ...
    @property
    def tensors(self) -> list[dict[str, Any]]:
        """name, shape, scale, zero_point and bits of each; the input first."""
    @property
    def operations(self) -> list[tuple[str, str]]:
        """(type, name) of each, in the order in which they run."""
    def weight_bytes(self) -> int:
        """Bytes of all weights packed to their bits, without biases."""
    def multiply_adds(self) -> int:
        """Of one example."""
    @property
    def task(self) -> str:
        """What the outputs are for: "classify", "regress", "reconstruct" or "multilabel" (docs/tasks.md)."""
    @property
    def input_mean(self) -> NDArray[np.float32] | None:
        """What numbers are standardised with before they come to the input's grid, for each channel; None without."""
    @property
    def input_std(self) -> NDArray[np.float32] | None:
        """The deviations to these means."""
    @property
    def output_mean(self) -> NDArray[np.float32] | None:
        """What the targets of a regression were standardised with; None without."""
    @property
    def output_std(self) -> NDArray[np.float32] | None:
        """The deviations to these means."""
    def quantize(self, numbers: ArrayLike) -> NDArray[np.uint8]:
        """Numbers in the units of the data, [n, ...], as integers for Engine.run(): standardised, then on the input's
        grid."""
    def dequantize(self, integers: ArrayLike) -> NDArray[np.float32]:
        """Integers of the output, [n, ...], as numbers: of a regression in the units of its targets."""
    def __repr__(self) -> str: ...
    def to_miniqat(self) -> bytes:
        """The bytes of a .miniqat file, for the engine here."""
    def to_tflite(self, float_io: bool = False, int8: bool = False, int4: bool = False) -> bytes:
        """The bytes of a TensorFlow Lite file (docs/exports-tflite.md)."""
    def to_onnx(self, packed_4_bits: bool = True, opset: int | None = None) -> bytes:
        """The bytes of an ONNX file in QDQ form (docs/exports-onnx.md). Without an opset, of the lowest that holds it."""
    def to_json(self, picture_grid: tuple[float, int] | None = None) -> bytes:
        """All numbers as JSON text, in bytes. picture_grid: (scale, zero point) of the pictures' bytes."""
    def to_c(self, prefix: str, images: ArrayLike, header_name: str = "",
             picture_grid: tuple[float, int] | None = None, accuracy: str = "") -> tuple[bytes, bytes]:
        """C99: (header, source) in bytes. `images`, uint8, become test vectors; `accuracy` is a line of comment."""
    def to_html(self, title: str, pictures: ArrayLike | None = None, picture_names: Sequence[str] = [],
                label: str = "integers", picture_grid: tuple[float, int] | None = None) -> bytes:
        """A page that runs a model of pictures and classes in a browser, in bytes. `pictures`: uint8, with a name for
        each. picture_grid: (scale, zero point) of their bytes; default: the input's."""

class Engine:
    """Runs an integer model: the same integers on every machine."""
    def __init__(self, model: IntegerModel) -> None:
        """Lays the weights out for this processor."""
    def run(self, images: ArrayLike) -> NDArray[np.uint8]:
        """Pictures [n, h, w, c] uint8, or other examples (IntegerModel.quantize()), to the output [n, ...] uint8."""
    def run_all(self, images: ArrayLike) -> dict[str, NDArray[np.uint8]]:
        """Every tensor of the model by name."""

class RewriteReport:
    """What a rewrite did."""
    def text(self) -> str:
        """For people: layers, edges and notes in columns."""
    @property
    def inserted(self) -> list[str]:
        """The names of the quantizers that this call inserted."""
    @property
    def remarks(self) -> list[str]:
        """Parts that stay float, and requests without effect."""
    @property
    def warnings(self) -> list[str]:
        """Options that are legal and hardly meant."""
    @property
    def edges(self) -> list[tuple[str, str, str, str]]:
        """(tensor, consumer, status, reason) of each edge."""

class Evaluation:
    """The result of a network on a data set."""
    @property
    def correct(self) -> int:
        """Pictures whose class was chosen."""
    @property
    def examples(self) -> int:
        """Pictures, or other examples."""
    @property
    def loss(self) -> float:
        """The mean of the task's loss; of classes: cross entropy."""
    @property
    def measures(self) -> dict[str, float]:
        """What the task measures, by name; the first decides which of two networks is better."""
    @property
    def accuracy(self) -> float:
        """correct / examples; 0 where the task is none of classes."""
    @property
    def balanced_accuracy(self) -> float:
        """Mean over the classes that have pictures of their own accuracies."""

class Verification:
    """The simulation and the integers side by side."""
    @property
    def simulated(self) -> float:
        """Accuracy."""
    @property
    def integer(self) -> float:
        """Accuracy."""
    @property
    def agreement(self) -> float:
        """The share of pictures for which both choose the same class."""
    @property
    def reference_equal(self) -> bool:
        """Whether the fast engine gave the integers of the plain loops, on the pictures compared."""

def read_graph(path: _Path) -> Graph:
    """Reads a graph JSON file."""
def import_onnx(path: _Path, batch_size: int = 0, height: int = 0, width: int = 0) -> tuple[Graph, dict[str, NDArray[Any]],
                dict[str, Any]]:
    """Reads an ONNX model (docs/import.md): (graph, variables by name, report). 0: as in the file."""
def op_types() -> list[str]:
    """The types that Graph.add() and graph JSON know."""
def read_safetensors(path: _Path) -> dict[str, NDArray[Any]]:
    """The tensors of a .safetensors file, by name."""
def write_safetensors(path: _Path, tensors: _Arrays) -> None:
    """Writes arrays by name, atomically."""
def grid(min: float, max: float, bits: int = 8, narrow_range: bool = False, symmetric: bool = False,
         power_of_two: bool = False) -> Grid:
    """The grid of a range: widened to contain 0, moved so that 0 is on it."""
def fake_quant(x: ArrayLike, min: ArrayLike, max: ArrayLike, bits: int = 8, narrow_range: bool = False, symmetric: bool = False,
               power_of_two: bool = False) -> NDArray[np.float32]:
    """x rounded to the grid of a range, float32. One range for all if min and max are numbers, one per channel if they have
    the shape of x's last axis (or last two). Raises ValueError if min > max, if one is not finite, and for a range too wide
    for float32."""
def fake_quant_gradient(d_y: ArrayLike, x: ArrayLike, min: ArrayLike, max: ArrayLike, bits: int = 8, narrow_range: bool = False,
                        symmetric: bool = False, power_of_two: bool = False,
                        range: Literal["fixed", "learned"] = "fixed") -> tuple[NDArray[np.float32], NDArray[np.float32],
                        NDArray[np.float32]]:
    """(d_x, d_min, d_max) of fake_quant(), by the straight-through estimator. range="learned" also counts what the width of
    the range does to the numbers inside (docs/low-bits.md)."""
def load(name: _Path, data_dir: _Path = "", train_size: int | None = None, test_size: int | None = None,
         seed: int = 1, skip_broken: bool = False, image_size: str = "", colour: Literal["auto", "grey", "rgb"] = "auto",
         mean: float = 0.0, std: float = 1.0, **kwargs: Any) -> tuple[Dataset, Dataset]:
    """(train, test) of a data set by name, or of your own files by their path (docs/data.md). Sizes and seed are those of
    data that miniqat draws, "synthetic", "synthetic-sounds" and "synthetic-hums"; None: the usual size. Of your own files
    image_size ("HxW"), colour ("grey", "rgb"), mean and std say how pictures are read, as the flags of `miniqat train` do,
    and skip_broken leaves out those that cannot be read. What is left out is a warning. Keywords are the flags of
    `miniqat train` for numbers and sounds: target, inputs, answers, no_standardise, pad_to, group_by, test_groups,
    features, frames, sample_rate, seconds, window_ms, stride_ms, bands, coefficients, low_hz, high_hz, mel_scale, silence,
    snr_db, shift_ms, gain_db, noise, noise_db."""
def make_classifier(
    model: str, dataset: Dataset, batch_size: int = 128, width: float = 1.0, output: str = "", task: str = ""
) -> Classifier:
    """A model by name, or from a .json or .onnx file, for the pictures and classes of a data set, or for its numbers.
    output: of a file with several outputs the one that has the logits; default: the first. task: Classifier.task;
    default: what the data are for."""
def find_classifier(graph: Graph, task: str = "classify") -> Classifier:
    """A copy of a graph as a classifier: its only float placeholder of rank 4, or else the only one that is no target,
    and its first output."""
def model_names() -> list[str]:
    """The models that have a name."""
def onnx_float(graph: Graph, variables: _Arrays, name: str = "network", opset: int | None = None) -> bytes:
    """The bytes of an ONNX file of a float network. Without an opset, of the lowest that holds it."""
def create_training_graph(graph: Graph, **kwargs: Any) -> RewriteReport:
    """Rewrites the graph in place for training with simulated quantization: folds batch norms and inserts quantizers
    (docs/rewrite.md). Keywords are the flags of `miniqat rewrite`, with `_` for `-`; `bits_config` may be a dictionary.
    Rewriting twice changes nothing, and asking for other settings then is an error. A session on the graph follows it: its
    next call runs with the quantizers."""
def create_eval_graph(graph: Graph, **kwargs: Any) -> RewriteReport:
    """The same for evaluation: stored ranges, no observers."""
def turn_to_evaluation(graph: Graph) -> None:
    """Turns the quantizers and batch norms of a training graph to evaluation."""
def quantization_label(graph: Graph) -> str:
    """"float", "W4A8", ...: how a graph is quantized."""
def ranges(session: Session) -> _Ranges:
    """The range of each quantizer of the session's graph: a list of (min, max), one for each channel."""
def calibrate(session: Session, batches: Iterable[_Feeds], method: Literal["mse", "minmax", "moving-average", "percentile"] = "mse",
              percentile: float = 99.99) -> _Ranges:
    """Finds the ranges of a graph of create_eval_graph() without training, and sets them. `batches`: the feeds of each
    batch. method: "mse", "minmax", "moving-average" or "percentile". Returns ranges()."""
def convert(graph: Graph, variables: _Arrays, input_scale: float = 0.003921568859368563, input_zero_point: int = 0,
            name: str = "model", dataset: Dataset | None = None, task: str = "") -> IntegerModel:
    """The integer-only model of an evaluation graph with these variables. The input's grid is that of the pictures' bytes.
    dataset: what the network is for; its grid is taken or, of numbers, the task and what they are standardised with, and
    the names of classes, labels or numbers. task: Classifier.task; default: what the data are for. Raises NotQuantized,
    naming the tensor, if one lacks a range, and Error, naming the quantizer, if a range never saw a number."""
def evaluate(session: Session, classifier: Classifier, dataset: Dataset) -> Evaluation:
    """Loss and measures of a session on a classifier's graph: of classes the accuracy."""
def evaluate_integers(model: IntegerModel, dataset: Dataset) -> Evaluation:
    """The same of an integer model."""
def verify(session: Session, classifier: Classifier, model: IntegerModel, dataset: Dataset) -> Verification:
    """Runs the evaluation graph and the integer model side by side over a data set."""
def train(out: _Path, overwrite: bool = False, resume: bool = False, report: Callable[[str], object] | None = None, on_step:
          Callable[[int, int, float], object] | None = None, **kwargs: Any) -> None:
    """`miniqat train`: keywords are its flags, with `_` for `-`; the run is kept in the folder `out`. dataset: a name, a
    path, a Dataset, of which one example in six is for the test, or a tuple of two, training and test; the run keeps their
    arrays, and standardises numbers. report(text) hears what the program would print, on_step(step, steps, loss) each step. After a
    KeyboardInterrupt, or what these functions raise, the checkpoint is written: resume=True goes on."""
def quantize(out: _Path, run: _Path | None = None, overwrite: bool = False, resume: bool = False,
             report: Callable[[str], object] | None = None, on_step: Callable[[int, int, float], object] | None = None,
             **kwargs: Any) -> Any:
    """`miniqat quantize`: makes integers of the float run in the folder `run`, or of model="FILE.onnx" with dataset.
    Keywords are the command's flags, with `_` for `-`; the run is kept in the folder `out`. report and on_step are those of
    train(). Returns what quantize.json has: "chosen", "rows" and so on."""
def sensitivity(out: _Path, run: _Path | None = None, bits: Sequence[int] = [2, 3, 4, 8], logits_bits: int = 8,
                average_bits: float | None = None, bytes: int | None = None, activation_bits: int | None = None,
                overwrite: bool = False, report: Callable[[str], object] | None = None, **kwargs: Any) -> Any:
    """`miniqat sensitivity`: what each layer of a float run, or of model="FILE.onnx" with dataset, loses at each width, and
    with a budget the bits to take. Other keywords are the command's flags, with `_` for `-`. Returns the content of
    sensitivity.json; it and bits.json, for bits_config, are in the folder `out`."""
def report(runs: _Path | Sequence[_Path], out: _Path, dataset: str = "", data_dir: _Path = "", sensitivity: _Path | None = None,
           pictures: int = 12, examples: int = 256, threads: int = 0) -> list[str]:
    """`miniqat report`: writes the page `out` on a run or several. sensitivity: the folder that sensitivity() wrote.
    Returns notes on what a run cannot show."""
def predict(run: _Path, pictures: int | _Path | Sequence[int | _Path] | ArrayLike | None = None, integer: bool = False,
            dataset: str = "", data_dir: _Path = "", split: Literal["test", "train", "validation"] = "test",
            checkpoint: _Path | None = None) -> list[Any]:
    """`miniqat predict`: what a run says of pictures, by the simulation or with `integer` by its integers. pictures:
    numbers in the run's data set, paths of files, or an array, [n, h, w, c] uint8 or floats in [0, 1], or numbers in the
    units of the data; None: all of `dataset`. A list of dictionaries: picture (or example), label, predicted, class, score,
    scores, or of other tasks than classes outputs, in the units of the data, and the error of a reconstruction. A sound of
    several windows has their number, windows, and the means of what is said of them."""
def set_thread_count(count: int) -> None:
    """For all that computes, from now on."""
def thread_count() -> int:
    """The number of threads that compute."""
