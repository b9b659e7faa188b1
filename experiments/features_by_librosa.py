"""What librosa makes of a sound: writes tests/datasets/sound/features_by_librosa.txt, which
tests/datasets/sound/features_test.cpp compares with datasets/sound/features.h.

    python3 -m venv venv && venv/bin/pip install librosa==0.11.0
    venv/bin/python experiments/features_by_librosa.py

A line is the features, their options (rate, window and stride in samples, bands, low and high frequency, mel scale), a step,
and the numbers of this step. The sound is sound_of() of the test."""

import pathlib

import librosa
import numpy as np
import scipy.fft

VERSION = "0.11.0"
TABLE = pathlib.Path(__file__).resolve().parent.parent / "tests/datasets/sound/features_by_librosa.txt"


def sound_of(count):
    t = np.arange(count, dtype=np.float64)
    noise = (np.arange(count, dtype=np.int64) * 7919 % 1000) / 1000 - 0.5
    return (0.5 * np.sin(0.03 * t + 0.00002 * t * t) + 0.1 * noise).astype(np.float32)


def log_mel(rate, window, stride, bands, low, high, scale):
    transform = 1 << (window - 1).bit_length()
    # librosa puts a short window into the middle of its frame.
    before = (transform - window) // 2
    samples = np.concatenate([np.zeros(before), sound_of(rate).astype(np.float64), np.zeros(transform - window - before)])
    power = librosa.feature.melspectrogram(y=samples, sr=rate, n_fft=transform, win_length=window, hop_length=stride,
                                           window="hann", center=False, power=2, n_mels=bands, fmin=low, fmax=high,
                                           htk=scale == "htk", norm=None if scale == "htk" else "slaney")
    return np.log(np.maximum(1e-10, power)).T


def main():
    if librosa.__version__ != VERSION:
        raise SystemExit(f"librosa is {librosa.__version__}, not {VERSION}")
    lines = [f"# Written by experiments/features_by_librosa.py with librosa {VERSION}."]
    for options in [(16000, 640, 320, 40, 20, 4000, "htk"), (8000, 256, 80, 20, 0, 4000, "htk"),
                    (16000, 1024, 512, 64, 50, 8000, "htk"), (16000, 640, 320, 40, 20, 4000, "slaney"),
                    (16000, 1024, 512, 128, 0, 8000, "slaney")]:
        bands = log_mel(*options)
        for step in (0, len(bands) // 2, len(bands) - 1):
            shown = " ".join(map(str, options))
            coefficients = scipy.fft.dct(bands[step], type=2, norm="ortho")[:10]
            lines.append(f"log-mel {shown} {step} " + " ".join(f"{number:.6f}" for number in bands[step]))
            lines.append(f"mfcc {shown} {step} " + " ".join(f"{number:.6f}" for number in coefficients))
    TABLE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
