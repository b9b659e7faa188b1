"""What this processor can do, for scripts that choose the instructions of other systems: one that it lacks ends a
process with an illegal instruction."""

import os
import pathlib

# As in /proc/cpuinfo. PyTorch's kernels of each capability (ATEN_CPU_CAPABILITY) are compiled for these.
NEEDED = {"avx2": {"avx2", "fma"}, "avx512": {"avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl"}}
# How a level of MINIQAT_MAX_ISA keeps our peers from what lies beyond it. "avx512" is our highest and caps nothing. MKL takes no
# notice on processors that are not Intel's, where it has AVX2 at most.
CAPS = {
    "avx2": {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2",
             "OPENBLAS_CORETYPE": "Haswell", "TORCHINDUCTOR_CPP_MARCH": "haswell", "XLA_FLAGS": "--xla_cpu_max_isa=AVX2"},
    "baseline": {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
                 "OPENBLAS_CORETYPE": "Nehalem", "TORCHINDUCTOR_CPP_MARCH": "nehalem",
                 "XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"}}
BEYOND = {"avx2": ("avx512", "amx", "avx_vnni"), "baseline": ("avx", "fma", "amx")}
TITLES = {"default": "baseline", "avx2": "AVX2", "avx512": "AVX-512"}


def flags(cpuinfo=pathlib.Path("/proc/cpuinfo")):
    """Of the first core; empty where the system does not say."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return set()
    return next((set(line.partition(":")[2].split()) for line in lines if line.startswith("flags")), set())


def caps(environment=os.environ):
    """What to add to the environment of a peer."""
    return CAPS.get(environment.get("MINIQAT_MAX_ISA"), {})


def within_cap(known, environment=os.environ):
    """Those of the flags that MINIQAT_MAX_ISA leaves."""
    beyond = BEYOND.get(environment.get("MINIQAT_MAX_ISA"), ())
    return {flag for flag in known if not flag.startswith(beyond)} if beyond else known


def has_bfloat16(known):
    """Without these it is emulated, and slower than float32."""
    return bool(known & {"amx_bf16", "avx512_bf16"})


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
