"""A worker of peers-accuracy, on tf-keras with tfmot: trains a network with fake quantizers of 8 bits from a float network,
converts it to TensorFlow Lite, and prints the accuracies of both.

    tensorflow_accuracy.py SYSTEM NETWORK 8 FLOAT.safetensors DATA SEED EPOCHS THREADS"""

import sys

sys.dont_write_bytecode = True
import tensorflow_side
from accuracy_side import BATCH, DECAY, MOMENTUM, Clock, Pictures, answers, layers, report
from tensorflow_side import keras, tf, toolkit


def interpreted(content):
    """Logits of integers, by the interpreter that TensorFlow holds."""
    interpreter = tf.lite.Interpreter(model_content=content)
    source, target = interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]
    interpreter.resize_tensor_input(source, (BATCH, *interpreter.get_input_details()[0]["shape"][1:]))
    interpreter.allocate_tensors()

    def logits(pictures):
        interpreter.set_tensor(source, pictures)
        interpreter.invoke()
        return interpreter.get_tensor(target)

    return logits


def main(network, wanted, pictures, seed, epochs):
    model = tensorflow_side.network(network, True, [array for layer in wanted for array in layer])
    optimizer = keras.optimizers.legacy.SGD(0.1, momentum=MOMENTUM)

    @tf.function
    def step(images, labels):
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        own = model.trainable_variables
        # As in miniqat, weights alone decay.
        decays = [DECAY if "kernel" in variable.name else 0 for variable in own]
        gradients = [gradient + decay * variable
                     for gradient, decay, variable in zip(tape.gradient(loss, own), decays, own)]
        optimizer.apply_gradients(zip(gradients, own))

    clock = Clock()
    for _, rate, x, labels in pictures.epochs(seed, epochs):
        optimizer.learning_rate.assign(rate)
        step(tf.constant(x), tf.constant(labels))
    seconds = clock.seconds()
    simulated = answers(lambda batch: model(batch, training=False), pictures.test)
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    integers = answers(interpreted(converter.convert()), pictures.test)
    report(pictures, simulated, integers, seconds, f"TensorFlow Lite of {tf.__version__}")


if __name__ == "__main__":
    _, network, _, source, data, seed, epochs, threads = sys.argv[1:]
    tf.config.threading.set_intra_op_parallelism_threads(int(threads))
    tf.config.threading.set_inter_op_parallelism_threads(1)
    keras.utils.set_random_seed(int(seed))
    main(network, layers(network, source), Pictures(network, data), int(seed), int(epochs))
