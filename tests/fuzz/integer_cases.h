#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace miniqat::fuzz {

/// A random integer model, or one that a briefly trained random net converts to: the fast engine beside the reference
/// loops, bit by bit, on 1 to 8 threads; of a converted one also the simulated graph beside the integers, operation by
/// operation, given equal inputs. Returns what is wrong and writes DIR/NAME.miniqat and NAME.images.safetensors, of as
/// few operations as show it; "" when all is well. A pure function of the seed.
std::string judge_integers(std::uint64_t seed, const std::filesystem::path& directory, const std::string& name);

/// Judges again what judge_integers wrote, by the path of NAME.miniqat.
std::string replay_integers(const std::filesystem::path& path);

/// A few random models as C, compiled and run, and in ONNX Runtime where that is installed, beside the reference loops.
/// Returns what is wrong; "" when all is well. A pure function of the seed.
std::string judge_exports(std::uint64_t seed);

}  // namespace miniqat::fuzz
