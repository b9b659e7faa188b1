#pragma once

#include <memory>

#include "layers/chain/chain_quantizer.h"
#include "quantize/fake_quant_attributes.h"

namespace miniqat::quantize {

/// FakeQuant as the last part of a chain of ops (layers/chain/chain.h), in the fast backend: with one range for the
/// tensor, and without dampening.
std::shared_ptr<const layers::ChainQuantizer> chain_quantizer(const FakeQuantAttributes& attributes);

}  // namespace miniqat::quantize
