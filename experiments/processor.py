"""What this processor can do, for scripts that choose the instructions of other systems: one that it lacks ends a
process with an illegal instruction."""

import os
import pathlib

# As in /proc/cpuinfo. PyTorch's kernels of each capability (ATEN_CPU_CAPABILITY) are compiled for these.
NEEDED = {"avx2": {"avx2", "fma"}, "avx512": {"avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl"}}
TITLES = {"default": "baseline", "avx2": "AVX2", "avx512": "AVX-512"}


def flags(cpuinfo=pathlib.Path("/proc/cpuinfo")):
    """Of the first core; empty where the system does not say."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return set()
    return next((set(line.partition(":")[2].split()) for line in lines if line.startswith("flags")), set())


def torch_capabilities(known):
    """Those of PyTorch's capabilities beyond its baseline that a processor with these flags has, or the baseline alone."""
    return [name for name, needed in NEEDED.items() if needed <= known] or ["default"]


def torch_variants(known):
    """A title and an environment for each capability that is worth a try, AVX2 first: that is PyTorch 1.13's own choice."""
    return [(TITLES[name], {"ATEN_CPU_CAPABILITY": name}) for name in torch_capabilities(known)]


def fault_of_environment(known, environment=os.environ):
    """What is wrong with the ATEN_CPU_CAPABILITY that the user set; None if nothing is."""
    asked = environment.get("ATEN_CPU_CAPABILITY", "default")
    if NEEDED.get(asked, set()) <= known:
        return None
    return f"ATEN_CPU_CAPABILITY is {asked}, but this processor has no {TITLES[asked]}: PyTorch would crash; unset it"
