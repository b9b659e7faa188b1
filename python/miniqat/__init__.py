"""Quantization-aware training: graphs that are rewritten in place, trained on NumPy arrays, and turned into integers.

docs/python.md of miniqat is the page; help(miniqat.NAME) has the details.
"""

from ._core import *
from ._core import __version__
