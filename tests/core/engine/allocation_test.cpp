// Once a phase of training has begun, a step allocates nothing: everything lives in the plan's arena, in the scratch
// stacks, or was there before. Counted is what our code asks operator new for. What oneDNN and OpenMP do inside their
// own libraries is theirs (oneDNN makes an object a call); they come from shared objects of their own, which is how
// they are told apart.

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/session.h"
#include "core/kernels/scratch.h"
#include "core/memory/guarded_memory.h"
#include "core/team/team.h"
#include "core/tensors/random.h"
#include "core/threads/parallel.h"
#include "integer/engine.h"
#include "layers/layers.h"
#include "models/models.h"
#include "optim/adam.h"
#include "optim/sgd.h"
#include "quantize/rewrite/rewrite.h"
#include "tests/integer/random_model.h"

namespace {

using Frames = std::array<void*, 12>;

std::atomic<bool> counting = false;
std::atomic<int> allocations = 0;
/// Who asked, for the first few.
std::array<Frames, 4> first_frames;

bool is_in(const void* address, std::string_view library) {
  Dl_info info;
  return dladdr(address, &info) != 0 && std::string_view(info.dli_fname).find(library) != std::string_view::npos;
}

/// Of operator new's caller and the callers above it the first that is not the standard library decides.
bool is_ours(const Frames& frames, const void* caller) {
  for (auto frame = std::ranges::find(frames, caller); frame != frames.end() && *frame != nullptr; ++frame)
    if (!is_in(*frame, "libstdc++")) return !is_in(*frame, "libdnnl") && !is_in(*frame, "libgomp");
  return true;
}

void note_allocation(const void* caller) {
  thread_local bool noting = false;
  if (!counting || noting) return;
  noting = true;
  Frames frames = {};
  backtrace(frames.data(), static_cast<int>(frames.size()));
  if (is_ours(frames, caller)) {
    const auto number = static_cast<std::size_t>(allocations++);
    if (number < first_frames.size()) first_frames[number] = frames;
  }
  noting = false;
}

void* allocate(std::size_t bytes, std::size_t alignment, const void* caller) {
  note_allocation(caller);
  void* memory = alignment <= alignof(std::max_align_t)
                     ? std::malloc(bytes)
                     : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

/// "miniqat::Session::train_step+0x1f", or the address in its file where there is no name.
std::string frame_text(void* address) {
  Dl_info info;
  if (dladdr(address, &info) == 0) return "?";
  char text[32];
  std::snprintf(text, sizeof text, "+%#zx",
                static_cast<std::size_t>(static_cast<char*>(address) - static_cast<char*>(info.dli_fbase)));
  std::string name = std::string(info.dli_fname) + text;
  if (info.dli_sname == nullptr) return name;
  int status = 0;
  char* readable = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
  name += std::string(" ") + (status == 0 ? readable : info.dli_sname);
  std::free(readable);
  return name;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes, 1, __builtin_return_address(0)); }
void* operator new[](std::size_t bytes) { return allocate(bytes, 1, __builtin_return_address(0)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace miniqat::allocation_test {
namespace {

/// What our code allocates during `body`.
template <class Body>
int allocations_of(const Body& body) {
  allocations = 0;
  counting = true;
  body();
  counting = false;
  return allocations;
}

std::string first_callers() {
  std::string text;
  for (int i = 0; i < std::min<int>(allocations, static_cast<int>(first_frames.size())); ++i) {
    text += "allocation " + std::to_string(i) + "\n";
    for (void* frame : first_frames[i])
      if (frame != nullptr) text += "  " + frame_text(frame) + "\n";
  }
  return text;
}

struct StepCase {
  const char* model;
  std::int64_t side;
  std::int64_t channels;
  bool quantizes;
  quantize::BnFold bn_fold = quantize::BnFold::kTf;
  bool adam = false;
  /// Pictures are fed as bytes.
  bool bytes = false;
};

/// Guarded memory has a list of what it gave, and each step a text: both allocate.
class AllocationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (is_guarding()) GTEST_SKIP() << "guarded memory allocates in every step";
  }
};

class Allocation : public AllocationTest, public ::testing::WithParamInterface<StepCase> {};

/// The phases begin with steps 1, kDelay and kFreeze. The very first steps may take longer to settle.
constexpr int kDelay = 5, kFreeze = 9, kLast = 12;

bool may_allocate(int step) { return step <= 2 || step == kDelay || step == kFreeze; }

/// On a busy machine a thread may compute another's part for the first time in a late step, and needs its scratch
/// memory then. Here both have enough before.
void grow_scratch() {
  run_in_team(
      2,
      [](void*, int) {
        ScratchScope scratch;
        scratch.take<std::byte>(std::size_t{1} << 22);
        team_barrier();
      },
      nullptr);
}

TEST_P(Allocation, OnceAPhaseHasBegunAStepAllocatesNothing) {
  const StepCase& task = GetParam();
  set_thread_count(2);
  grow_scratch();
  Graph graph;
  const Output images = placeholder(graph, "images", {4, task.side, task.side, task.channels});
  const Output labels = placeholder(graph, "labels", {4}, DType::kInt32);
  const Output logits = models::find_model(task.model).build(graph, images, {.outputs = 10, .width = 0.25});
  const Output loss = layers::softmax_cross_entropy(graph, logits, labels);
  if (task.quantizes)
    quantize::create_training_graph(graph,
                                    {.quant_delay = kDelay, .freeze_bn_delay = kFreeze, .bn_fold = task.bn_fold});
  Session session(graph);
  const optim::Sgd sgd({.learning_rate = 1e-3, .momentum = 0.9});
  const optim::Adam adam({.learning_rate = 1e-4});
  const Optimizer& optimizer = task.adam ? static_cast<const Optimizer&>(adam) : sgd;
  Tensor pixels(images.shape());
  Random random(3);
  for (float& pixel : pixels.values<float>()) pixel = random.uniform();
  Feeds feeds = {{images, pixels}, {labels, Tensor(Shape{4}, DType::kInt32)}};
  if (task.bytes) {
    Tensor codes(images.shape(), DType::kUInt8);
    for (std::uint8_t& code : codes.values<std::uint8_t>()) code = static_cast<std::uint8_t>(random.bits());
    feeds[0].second = CodedTensor(codes, {1.0f / 255, 0});
  }
  for (int step = 1; step <= kLast; ++step) {
    const auto train = [&] { session.train_step(loss, optimizer, feeds); };
    // Making kernels allocates so often that looking at each takes minutes.
    if (may_allocate(step))
      train();
    else
      ASSERT_EQ(allocations_of(train), 0) << "step " << step << "\n" << first_callers();
  }
}

constexpr quantize::BnFold kSingle = quantize::BnFold::kSingle;

INSTANTIATE_TEST_SUITE_P(
    Models, Allocation,
    ::testing::Values(StepCase{"lenet", 28, 1, false}, StepCase{"lenet", 28, 1, true}, StepCase{"lenet5", 28, 1, false},
                      StepCase{"lenet5", 28, 1, true}, StepCase{"lenet5", 28, 1, true, kSingle, true},
                      StepCase{"lenet5", 28, 1, true, quantize::BnFold::kTf, false, true},
                      StepCase{"mobilenet_v1", 32, 3, false}, StepCase{"mobilenet_v1", 32, 3, true},
                      StepCase{"mobilenet_v1", 32, 3, true, kSingle}, StepCase{"mobilenet_v2", 32, 3, true},
                      StepCase{"resnet20", 32, 3, false}, StepCase{"resnet20", 32, 3, true},
                      StepCase{"resnet20", 32, 3, true, kSingle}),
    [](const auto& info) {
      const StepCase& task = info.param;
      return std::string(task.model) + (task.quantizes ? "_qat" : "_float") +
             (task.bn_fold == kSingle ? "_single" : "") + (task.adam ? "_adam" : "") + (task.bytes ? "_bytes" : "");
    });

TEST_F(AllocationTest, OfTheIntegerEngineAfterTheFirstRunOfABatchSizeIsNone) {
  set_thread_count(2);
  const integer::Model model = testing::random_network(1);
  Random random(1);
  const Tensor few = testing::random_images(random, model, 3), many = testing::random_images(random, model, 20);
  integer::Engine engine(model);
  engine.run(few);
  engine.run(many);
  for (const Tensor& images : {few, many, many, few})
    EXPECT_EQ(allocations_of([&] { engine.run(images); }), 0) << images.shape() << "\n" << first_callers();
}

TEST_F(AllocationTest, IsSeenWhereItIsOurs) {
  std::vector<int>* numbers = nullptr;
  EXPECT_EQ(allocations_of([&] { numbers = new std::vector<int>(10); }), 2);
  delete numbers;
  EXPECT_EQ(allocations_of([] { Tensor(Shape{100}); }), 2) << "the memory, and what owns it";
}

}  // namespace
}  // namespace miniqat::allocation_test
