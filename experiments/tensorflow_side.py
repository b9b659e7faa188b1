"""TensorFlow's side of bench-peers, in a process of its own: miniqat's models in tf-keras, trained in graph mode whenever it
is told to (peer_side.py). Its environment decides whether TensorFlow calls oneDNN.

    tensorflow_side.py about
    tensorflow_side.py train NETWORK float|bfloat16|QAT WAY THREADS

A WAY is a list of words with commas between: XLA compiles the step, "concurrent" runs two operations at once. bfloat16 is
the policy mixed_bfloat16, QAT is tfmot's quantize_apply with its default of 8 bits, which quantizes each layer's weights and
output and does not fold batch norms while it trains."""

import os
import sys

sys.dont_write_bytecode = True
os.environ.update({"TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"})
import tensorflow as tf
import tensorflow_model_optimization as tfmot
import tf_keras as keras
from tf_keras import layers
from peer_side import NETWORKS, serve_training

DECAY = 5e-4
toolkit = tfmot.quantization.keras


def lenet(x, shortcut):
    for channels in (32, 64):
        x = layers.MaxPool2D()(layers.ReLU()(layers.Conv2D(channels, 5, padding="same")(x)))
    x = layers.Dropout(0.5)(layers.Dense(1024, activation="relu")(layers.Flatten()(x)))
    return layers.Dense(10)(x)


def lenet5(x, shortcut):
    for channels, padding in ((6, "same"), (16, "valid")):
        x = layers.MaxPool2D()(layers.ReLU()(layers.Conv2D(channels, 5, padding=padding)(x)))
    x = layers.Flatten()(x)
    for width in (120, 84):
        x = layers.Dense(width, activation="relu")(x)
    return layers.Dense(10)(x)


def conv(x, channels, kernel, stride=1, eps=0.001):
    x = layers.Conv2D(channels, kernel, stride, padding="same", use_bias=False)(x)
    return layers.BatchNormalization(epsilon=eps)(x)


def depthwise(x, stride):
    x = layers.DepthwiseConv2D(3, stride, padding="same", use_bias=False)(x)
    return relu6(layers.BatchNormalization(epsilon=0.001)(x))


def relu6(x):
    return layers.ReLU(6.0)(x)


def classifier(x):
    return layers.Dense(10)(layers.GlobalAveragePooling2D()(x))


def resnet20(x, shortcut):
    x, inputs = layers.ReLU()(conv(x, 16, 3, eps=1e-5)), 16
    for channels in (16, 32, 64):
        for k in range(3):
            stride = 2 if channels > 16 and k == 0 else 1
            y = layers.ReLU()(conv(x, channels, 3, stride, eps=1e-5))
            kept = shortcut(stride, channels - inputs)(x) if stride > 1 else x
            x = layers.ReLU()(layers.Add()([conv(y, channels, 3, eps=1e-5), kept]))
            inputs = channels
    return classifier(x)


def mobilenet_v1(x, shortcut):
    x = relu6(conv(x, 32, 3))
    for channels, repeats, stride in ((64, 1, 1), (128, 2, 2), (256, 2, 2), (512, 6, 2), (1024, 2, 2)):
        for k in range(repeats):
            x = relu6(conv(depthwise(x, stride if k == 0 else 1), channels, 1))
    return classifier(x)


def mobilenet_v2(x, shortcut):
    x, inputs = relu6(conv(x, 32, 3)), 32
    for expansion, channels, repeats, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                                 (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for k in range(repeats):
            step = stride if k == 0 else 1
            y = relu6(conv(x, inputs * expansion, 1)) if expansion > 1 else x
            y = conv(depthwise(y, step), channels, 1)
            x = layers.Add()([x, y]) if step == 1 and inputs == channels else y
            inputs = channels
    return classifier(relu6(conv(x, 1280, 1)))


class Shortcut(layers.Layer):
    """Every second pixel, and zeros for the channels that are missing."""

    def __init__(self, stride, missing, **other):
        super().__init__(**other)
        self.stride, self.missing = stride, missing

    def call(self, x):
        low = self.missing // 2
        return tf.pad(x[:, ::self.stride, ::self.stride], [[0, 0], [0, 0], [0, 0], [low, self.missing - low]])

    def get_config(self):
        return {**super().get_config(), "stride": self.stride, "missing": self.missing}


class Unquantized(toolkit.QuantizeConfig):
    """A shortcut's output is on the grid of its input."""

    def get_weights_and_quantizers(self, layer):
        return []

    def get_activations_and_quantizers(self, layer):
        return []

    def get_output_quantizers(self, layer):
        return []

    def set_quantize_weights(self, layer, quantize_weights):
        pass

    def set_quantize_activations(self, layer, quantize_activations):
        pass

    def get_config(self):
        return {}


BUILDERS = {"lenet": lenet, "lenet5": lenet5, "resnet20": resnet20, "mobilenet_v1": mobilenet_v1,
            "mobilenet_v2": mobilenet_v2}


def network(name, quantized, weights=None):
    """`weights`: those of the float network, in Keras' order; None: random ones."""
    _, side, channels, _ = NETWORKS[name]
    images = keras.Input((side, side, channels))
    if not quantized:
        return keras.Model(images, BUILDERS[name](images, Shortcut))
    annotated = lambda *arguments: toolkit.quantize_annotate_layer(Shortcut(*arguments), Unquantized())
    model = keras.Model(images, BUILDERS[name](images, annotated))
    if weights is not None:
        model.set_weights(weights)
    model = toolkit.quantize_annotate_model(model)
    with toolkit.quantize_scope({"Shortcut": Shortcut, "Unquantized": Unquantized}):
        return toolkit.quantize_apply(model)


def training(name, arithmetic, way):
    """A function that trains for one step."""
    batch, side, channels, rate = NETWORKS[name]
    keras.utils.set_random_seed(1)
    if arithmetic == "bfloat16":
        keras.mixed_precision.set_global_policy("mixed_bfloat16")
    model = network(name, arithmetic == "QAT")
    # Updates a variable in one operation; today's SGD takes several.
    optimizer = keras.optimizers.legacy.SGD(rate, momentum=0.9)
    labels = tf.range(batch) % 10
    noise = [tf.random.uniform((n, side, side, channels)) for n in (10, batch)]
    images = (tf.gather(noise[0], labels) + noise[1]) / 2

    @tf.function(jit_compile="XLA" in way)
    def step(images, labels):
        with tf.GradientTape() as tape:
            logits = tf.cast(model(images, training=True), tf.float32)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        variables = model.trainable_variables
        gradients = [gradient + DECAY * variable for gradient, variable in zip(tape.gradient(loss, variables), variables)]
        optimizer.apply_gradients(zip(gradients, variables))
        return loss

    return lambda: float(step(images, labels))


def work(kind, *arguments):
    if kind == "about":
        print(f"TensorFlow {tf.__version__} with tfmot {tfmot.__version__}")
        return
    name, arithmetic, way, threads = arguments
    tf.config.threading.set_intra_op_parallelism_threads(int(threads))
    tf.config.threading.set_inter_op_parallelism_threads(2 if "concurrent" in way else 1)
    serve_training(NETWORKS[name][0], training(name, arithmetic, way.split(", ")))


if __name__ == "__main__":
    work(*sys.argv[1:])
