"""Pictures of experiments/last-points as `miniqat train` has them: the same are held out, and each batch has the same, cropped and
mirrored alike. The numbers are those of core/tensors/random.h."""

import miniqat
import numpy as np

BATCH = 128


def text_key(text):
    """hash_text(): FNV-1a."""
    key = 0xcbf29ce484222325
    for byte in text.encode():
        key = (key ^ byte) * 0x100000001b3 % 2 ** 64
    return np.uint64(key)


def mixed(a, b):
    """mix(): splitmix64's finaliser."""
    def finalised(z):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
        return z ^ (z >> np.uint64(31))
    with np.errstate(over='ignore'):
        return finalised(finalised(np.asarray(a, np.uint64)) + np.uint64(0x9e3779b97f4a7c15) + np.asarray(b, np.uint64))


def philox(key, counter):
    """philox() for an array of keys: [4, n] words of 32 bits (Salmon et al. 2011, section 3.3)."""
    low, shift = np.uint64(0xffffffff), np.uint64(32)
    words = [np.full_like(key, counter), *(np.zeros_like(key) for _ in range(3))]
    keys = [key & low, key >> shift]
    for _ in range(10):
        first, second = np.uint64(0xd2511f53) * words[0], np.uint64(0xcd9e8d57) * words[2]
        words = [(second >> shift) ^ words[1] ^ keys[0], second & low, (first >> shift) ^ words[3] ^ keys[1], first & low]
        keys = [(keys[0] + np.uint64(0x9e3779b9)) & low, (keys[1] + np.uint64(0xbb67ae85)) & low]
    return words


def crops(seed, batch, count, pad):
    """(top, left, mirrored) of each picture of a batch: draw_augmentation() of datasets/augment.h with flips."""
    keys = mixed(mixed(mixed(text_key('datasets/augment'), seed), batch), np.arange(count))
    words = [*philox(keys, 0), *philox(keys, 1)]
    draws = [words[i] << np.uint64(32) | words[i + 1] for i in (0, 2, 4)]
    # Random::below() draws again with a chance of 2^-60, which is left out.
    return [(d % np.uint64(n)).astype(int) - shift for d, n, shift in zip(draws, (2 * pad + 1, 2 * pad + 1, 2), (pad, pad, 0))]


def varied(images, ground, seed, batch, pad=4):
    """A batch of pictures, cropped and mirrored as --augment crop-flip does."""
    height, width = images.shape[1:3]
    padded = np.full((len(images), height + 2 * pad, width + 2 * pad, images.shape[3]), ground, np.uint8)
    padded[:, pad:-pad, pad:-pad] = images
    result = np.empty_like(images)
    for k, (top, left, mirrored) in enumerate(zip(*crops(seed, batch, len(images), pad))):
        crop = padded[k, pad + top:pad + top + height, pad + left:pad + left + width]
        result[k] = crop[:, ::-1] if mirrored else crop
    return result


def held_out(images, labels, n):
    """Whether each picture is of the validation part: hold_out() of datasets/hold_out.h, by class."""
    counts = np.bincount(labels)
    if np.any(counts * n % len(labels)):
        raise ValueError(f'{n} pictures cannot be held out: no whole share of each class')
    hashes = np.full(len(images), 0xcbf29ce484222325, np.uint64)
    for column in np.ascontiguousarray(images.reshape(len(images), -1).T):
        hashes ^= column
        hashes *= np.uint64(0x100000001b3)
    hashes = mixed(text_key('datasets/hold_out'), hashes)
    chosen = np.zeros(len(images), bool)
    for label, count in enumerate(counts):
        own = np.flatnonzero(labels == label)
        chosen[own[np.argsort(hashes[own], kind='stable')[:count * n // len(labels)]]] = True
    return chosen


class Pictures:
    """A training part and what is held out of it."""

    def __init__(self, data, held):
        chosen = held_out(data.images, data.labels, held)
        self.scale, self.zero_point, self.classes = data.scale, data.zero_point, data.classes
        self.training, self.held = (self._dataset(data.images[part], data.labels[part]) for part in (~chosen, chosen))
        self.images, self.labels = self.training.images, self.training.labels

    def _dataset(self, images, labels):
        return miniqat.Dataset(images, labels, classes=self.classes, scale=self.scale, zero_point=self.zero_point)

    @property
    def steps(self):
        """Batches of an epoch."""
        return len(self.images) // BATCH

    def batches(self, seed, first=0, varies=True):
        """Endless (pictures, labels) from batch `first` on, as a run with this seed has them."""
        numbers = miniqat.Dataset.of_numbers(np.arange(len(self.images))[:, None].astype(np.float32), self.labels)
        for batch, (chosen, labels) in enumerate(miniqat.Loader(numbers, BATCH, seed=seed, first_batch=first), first):
            images = self.images[chosen[:, 0].astype(int)]
            images = varied(images, self.zero_point, seed, batch) if varies else images
            yield miniqat.Bytes(images, self.scale, self.zero_point), labels
