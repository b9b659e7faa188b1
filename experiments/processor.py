"""What this processor can do, for scripts that choose the instructions of other systems: one that it lacks ends a
process with an illegal instruction."""

import os
import pathlib

# As in /proc/cpuinfo. PyTorch's kernels of each capability (ATEN_CPU_CAPABILITY) are compiled for these.
NEEDED = {"avx2": {"avx2", "fma"}, "avx512": {"avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl"}}
# What the levels of MINIQAT_MAX_ISA (core/kernels/instruction_set.h) need, the least first, and the flags that lie beyond each.
LEVELS = {"baseline": set(), "avx2": NEEDED["avx2"], "avx2-vnni": NEEDED["avx2"] | {"avx_vnni"}, "avx512": NEEDED["avx512"],
          "avx512-vnni": NEEDED["avx512"] | {"avx512_vnni"}}
NEWEST = ("avx512_bf16", "avx512_fp16", "amx")
BEYOND = {"baseline": ("avx", "fma", "amx"), "avx2": ("avx512", "amx", "avx_vnni"), "avx2-vnni": ("avx512", "amx"),
          "avx512": (*NEWEST, "avx512_vnni", "avx_vnni"), "avx512-vnni": NEWEST}


def peer_cap(aten, onednn, mkl, openblas, march, xla):
    return {"ATEN_CPU_CAPABILITY": aten, "ONEDNN_MAX_CPU_ISA": onednn, "MKL_ENABLE_INSTRUCTIONS": mkl,
            "OPENBLAS_CORETYPE": openblas, "TORCHINDUCTOR_CPP_MARCH": march, "XLA_FLAGS": f"--xla_cpu_max_isa={xla}"}


# How a level keeps our peers from what lies beyond it; "amx" caps nothing. MKL takes no notice on processors that are not
# Intel's, where it has AVX2 at most. Code that is compiled for floats gains nothing from VNNI.
CAPS = {"baseline": peer_cap("default", "SSE41", "SSE4_2", "Nehalem", "nehalem", "SSE4_2"),
        "avx2": peer_cap("avx2", "AVX2", "AVX2", "Haswell", "haswell", "AVX2"),
        "avx2-vnni": peer_cap("avx2", "AVX2_VNNI", "AVX2_E1", "Haswell", "haswell", "AVX2"),
        "avx512": peer_cap("avx512", "AVX512_CORE", "AVX512", "SkylakeX", "skylake-avx512", "AVX512"),
        "avx512-vnni": peer_cap("avx512", "AVX512_CORE_VNNI", "AVX512_E1", "SkylakeX", "cascadelake", "AVX512_VNNI")}
TITLES = {"default": "baseline", "avx2": "AVX2", "avx512": "AVX-512"}


def flags(cpuinfo=pathlib.Path("/proc/cpuinfo")):
    """Of the first core; empty where the system does not say."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return set()
    return next((set(line.partition(":")[2].split()) for line in lines if line.startswith("flags")), set())


def caps(known, environment=os.environ):
    """What to add to the environment of a peer: nothing if the cap takes nothing from a processor with these flags."""
    left = within_cap(known, environment)
    if left == known:
        return {}
    return CAPS[next(level for level in reversed(LEVELS) if LEVELS[level] <= left)]


def within_cap(known, environment=os.environ):
    """Those of the flags that MINIQAT_MAX_ISA leaves."""
    beyond = BEYOND.get(environment.get("MINIQAT_MAX_ISA"), ())
    return {flag for flag in known if not flag.startswith(beyond)} if beyond else known


def has_bfloat16(known):
    """Without these it is emulated, and slower than float32."""
    return bool(known & {"amx_bf16", "avx512_bf16"})


def has_vnni(known):
    """Exact products of signed bytes."""
    return bool(known & {"avx512_vnni", "amx_int8"})


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
