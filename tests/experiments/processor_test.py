"""Which instructions of PyTorch's experiments/processor.py takes on which processor. The argument is the folder
experiments/."""

import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv.pop(1))
import processor

AVX2 = "sse2 ssse3 fma sse4_1 avx f16c avx2 bmi2"
AVX512 = AVX2 + " avx512f avx512dq avx512cd avx512bw avx512vl avx512_vnni"


class ProcessorTest(unittest.TestCase):
    def flags_of(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "cpuinfo"
            path.write_text(text)
            return processor.flags(path)

    def variants_of(self, flags):
        return [title for title, _ in processor.torch_variants(set(flags.split()))]

    def test_flags_are_those_of_the_first_core(self):
        text = f"processor\t: 0\nflags\t\t: {AVX2}\nbugs\t\t: x\n\nprocessor\t: 1\nflags\t\t: sse2\n"
        self.assertEqual(self.flags_of(text), set(AVX2.split()))
        self.assertEqual(self.flags_of("processor : 0\nFeatures : fp asimd\n"), set(), "64-bit ARM")
        self.assertEqual(processor.flags(pathlib.Path("/nonexistent/cpuinfo")), set())

    def test_nothing_that_the_processor_lacks(self):
        self.assertEqual(self.variants_of(AVX512), ["AVX2", "AVX-512"])
        self.assertEqual(self.variants_of(AVX2), ["AVX2"])
        self.assertEqual(self.variants_of("sse2 sse4_2 avx"), ["baseline"])
        self.assertEqual(self.variants_of(""), ["baseline"])
        # Processors with the first instructions of AVX-512 alone (Knights Landing), and with AVX2 but no fused multiply-add.
        self.assertEqual(self.variants_of(AVX2 + " avx512f avx512cd"), ["AVX2"])
        self.assertEqual(self.variants_of("avx avx2"), ["baseline"])

    def test_each_variant_is_asked_for_by_name(self):
        environments = [environment for _, environment in processor.torch_variants(set(AVX512.split()))]
        self.assertEqual(environments, [{"ATEN_CPU_CAPABILITY": "avx2"}, {"ATEN_CPU_CAPABILITY": "avx512"}])

    def test_what_the_user_asked_for_is_looked_at(self):
        known = set(AVX2.split())
        self.assertIn("no AVX-512", processor.fault_of_environment(known, {"ATEN_CPU_CAPABILITY": "avx512"}))
        for environment in ({}, {"ATEN_CPU_CAPABILITY": "avx2"}, {"ATEN_CPU_CAPABILITY": "default"}):
            self.assertIsNone(processor.fault_of_environment(known, environment))

    def test_peers_are_capped_as_we_are(self):
        known = set((AVX512 + " avx512_bf16 amx_bf16 avx_vnni").split())
        self.assertTrue(processor.has_bfloat16(known))
        self.assertTrue(processor.has_vnni(known))
        for environment in ({}, {"MINIQAT_MAX_ISA": "amx"}):
            self.assertEqual((processor.caps(known, environment), processor.within_cap(known, environment)), ({}, known))
        avx2, baseline = {"MINIQAT_MAX_ISA": "avx2"}, {"MINIQAT_MAX_ISA": "baseline"}
        self.assertEqual(processor.within_cap(known, avx2), set(AVX2.split()))
        self.assertEqual(processor.caps(known, avx2)["ONEDNN_MAX_CPU_ISA"], "AVX2")
        self.assertFalse(processor.has_bfloat16(processor.within_cap(known, avx2)))
        self.assertFalse(processor.has_vnni(processor.within_cap(known, avx2)))
        self.assertEqual(processor.within_cap(known, baseline), {"sse2", "ssse3", "sse4_1", "f16c", "bmi2"})
        for environment in (avx2, baseline):
            variants = processor.torch_variants(processor.within_cap(known, environment))
            self.assertEqual([choice["ATEN_CPU_CAPABILITY"] for _, choice in variants],
                             [processor.caps(known, environment)["ATEN_CPU_CAPABILITY"]])

    def test_a_cap_gives_a_processor_nothing(self):
        """Level of the cap, flags of the processor, instructions of oneDNN and of PyTorch; None: nothing is capped."""
        first, newest = AVX512.removesuffix(" avx512_vnni"), AVX512 + " avx_vnni avx512_bf16 amx_int8 amx_bf16"
        for level, flags, onednn, aten in (
                ("avx512", AVX2, None, None), ("avx512", first, None, None), ("avx512", AVX512, "AVX512_CORE", "avx512"),
                ("avx512", newest, "AVX512_CORE", "avx512"), ("avx512", AVX2 + " avx_vnni", "AVX2", "avx2"),
                ("avx2-vnni", AVX512, "AVX2", "avx2"), ("avx2-vnni", newest, "AVX2_VNNI", "avx2"),
                ("avx512-vnni", AVX512, None, None), ("avx512-vnni", newest, "AVX512_CORE_VNNI", "avx512"),
                ("avx512-vnni", AVX2 + " avx_vnni", None, None)):
            caps = processor.caps(set(flags.split()), {"MINIQAT_MAX_ISA": level})
            self.assertEqual((caps.get("ONEDNN_MAX_CPU_ISA"), caps.get("ATEN_CPU_CAPABILITY")), (onednn, aten), (level, flags))


if __name__ == "__main__":
    unittest.main()
