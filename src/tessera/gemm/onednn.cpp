#include "tessera/gemm/onednn.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <dnnl.hpp>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "tessera/base/error.h"

// Of the OpenMP library that oneDNN is built on. Weak, so that no compiler's own one is linked
// beside it; absent where oneDNN is built on something else.
extern "C" {
__attribute__((weak)) void omp_set_num_threads(int);
__attribute__((weak)) int omp_get_max_threads();
}

namespace tessera::cpu {

namespace {

/// oneDNN asks OpenMP how many threads there are when it makes a product and when it runs it: while
/// this lives, the calling thread's answer is one. The threads are ours.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads != nullptr ? omp_get_max_threads() : 1) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

/// Products are made one at a time. oneDNN may make them together, but its cache is set up where
/// ThreadSanitizer cannot see it, and devices that start at once would be reported.
std::mutex& making() {
  static constinit std::mutex mutex;
  return mutex;
}

using Desc = dnnl::memory::desc;

Desc matrix(std::int64_t rows, std::int64_t cols, std::int64_t row, std::int64_t col) {
  return {{rows, cols}, dnnl::memory::data_type::f32, dnnl::memory::dims{row, col}};
}

// What versions 2 and 3 of oneDNN write differently.
#if DNNL_VERSION_MAJOR >= 3
constexpr dnnl::cpu_isa kAnyIsa = dnnl::cpu_isa::isa_default;
const_dnnl_memory_desc_t c_handle(const Desc& desc) { return desc.get(); }
dnnl::matmul::primitive_desc matmul(const dnnl::engine& engine, const Desc& a, const Desc& b,
                                    const Desc& c, const dnnl::primitive_attr& attributes) {
  return {engine, a, b, c, attributes};
}
#else
constexpr dnnl::cpu_isa kAnyIsa = dnnl::cpu_isa::all;
const dnnl_memory_desc_t* c_handle(const Desc& desc) { return &desc.data; }
dnnl::matmul::primitive_desc matmul(const dnnl::engine& engine, const Desc& a, const Desc& b,
                                    const Desc& c, const dnnl::primitive_attr& attributes) {
  return {{a, b, c}, attributes, engine};
}
#endif

dnnl::primitive_attr attributes(bool accumulate) {
  dnnl::primitive_attr out;
  out.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0F);
    out.set_post_ops(sum);
  }
  return out;
}

/// An operand of one call. The C++ wrapper would allocate a counter of owners for each.
class MatrixView {
 public:
  MatrixView(const Desc& desc, const dnnl::engine& engine, const void* data) {
    const dnnl_status_t status =
        dnnl_memory_create(&memory_, c_handle(desc), engine.get(),
                           const_cast<void*>(data));  // operands are only read
    check(status == dnnl_success, "oneDNN: status ", static_cast<int>(status));
  }
  ~MatrixView() { dnnl_memory_destroy(memory_); }
  MatrixView(const MatrixView&) = delete;
  MatrixView& operator=(const MatrixView&) = delete;
  dnnl_memory_t get() const { return memory_; }

 private:
  dnnl_memory_t memory_ = nullptr;
};

}  // namespace

std::string onednn_version() {
  const dnnl_version_t& v = *dnnl_version();
  return text(v.major, ".", v.minor, ".", v.patch, " (", std::string_view(v.hash).substr(0, 8),
              ")");
}

bool cap_onednn(OnednnLevel level) {
#if defined(__x86_64__)
  constexpr dnnl::cpu_isa kLevels[] = {dnnl::cpu_isa::sse41, dnnl::cpu_isa::avx2,
                                       dnnl::cpu_isa::avx512_core, kAnyIsa};
  return dnnl::set_max_cpu_isa(kLevels[static_cast<std::size_t>(level)]) == dnnl::status::success;
#else
  (void)level;
  return true;
#endif
}

struct Gemm::State {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  Desc plain_b;
  dnnl::matmul::primitive_desc desc;
  Desc a, b, c, scratch, pack_scratch;  // asked for once: each answer is allocated
  dnnl::matmul product;
  std::optional<dnnl::reorder::primitive_desc> pack_desc;
  dnnl::reorder packing;

  State(const GemmShape& s, Weights weights) : plain_b(matrix(s.k, s.n, s.b_row, s.b_col)) {
    const bool packed = weights == Weights::Packed;
    const Desc any({s.k, s.n}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any);
    desc = matmul(engine, matrix(s.m, s.k, s.a_row, s.a_col), packed ? any : plain_b,
                  matrix(s.m, s.n, s.c_row, 1), attributes(s.accumulate));
    product = dnnl::matmul(desc);
    a = desc.src_desc(), b = desc.weights_desc(), c = desc.dst_desc();
    scratch = desc.scratchpad_desc();
    if (!packed) return;
    pack_desc.emplace(engine, plain_b, engine, b, attributes(false));
    packing = dnnl::reorder(*pack_desc);
    pack_scratch = pack_desc->scratchpad_desc();
  }

  /// The C++ wrapper would build a map of arguments per call.
  template <std::size_t N>
  void execute(const dnnl::primitive& primitive, const std::array<dnnl_exec_arg_t, N>& args) const {
    const dnnl_status_t status =
        dnnl_primitive_execute(primitive.get(), stream.get(), static_cast<int>(N), args.data());
    check(status == dnnl_success, "oneDNN: status ", static_cast<int>(status));
  }

  MatrixView at(const Desc& desc, const void* data) const { return {desc, engine, data}; }
};

namespace {

/// oneDNN makes code when a product first runs, and does not look whether it got the memory. So the
/// first product of the process runs when it is made, where there is room.
void run_first_product() {
  constexpr std::size_t kRoom = 32 << 20;
  void* const room = mmap(nullptr, kRoom, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED)
    fail(Fault::Resource, "the memory of ", static_cast<std::int64_t>(kRoom >> 20),
         " MiB for oneDNN's code cannot be reserved: ", std::generic_category().message(errno),
         "; raise the memory limit (ulimit -v, cgroup)");
  munmap(room, kRoom);
  constexpr std::int64_t kSize = 16;
  const Gemm product(
      {.m = kSize, .n = kSize, .k = kSize, .a_row = kSize, .b_row = kSize, .c_row = kSize});
  const std::vector<float> a(kSize * kSize), b(kSize * kSize);
  std::vector<float> c(kSize * kSize);
  std::vector<std::byte> scratch(static_cast<std::size_t>(product.scratch_bytes()) + 64);
  const auto at = reinterpret_cast<std::uintptr_t>(scratch.data());
  product.execute(a.data(), b.data(), c.data(), scratch.data() + (64 - at % 64) % 64);
}

/// False the first time that it is asked.
bool asked_before() {
  static constinit std::atomic<bool> asked = false;
  return asked.exchange(true);
}

}  // namespace

Gemm::Gemm(const GemmShape& shape, Weights weights) {
  if (!asked_before()) run_first_product();
  const OneThread one;
  const std::lock_guard lock(making());
  try {
    state_ = std::make_unique<State>(shape, weights);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
    check(false, "oneDNN refuses a product of ", shape.m, " x ", shape.k, " x ", shape.n, ": ",
          error.what());
  }
}
Gemm::Gemm(Gemm&&) noexcept = default;
Gemm& Gemm::operator=(Gemm&&) noexcept = default;
Gemm::~Gemm() = default;

std::int64_t Gemm::scratch_bytes() const {
  std::size_t bytes = state_->scratch.get_size();
  if (state_->pack_desc) bytes = std::max(bytes, state_->pack_scratch.get_size());
  return static_cast<std::int64_t>(bytes);
}

std::int64_t Gemm::packed_bytes() const { return static_cast<std::int64_t>(state_->b.get_size()); }

std::string_view Gemm::implementation() const { return state_->desc.impl_info_str(); }

void Gemm::pack(const float* b, void* packed, void* scratch) const {
  check(state_->pack_desc.has_value(), "a product of plain operands is asked to pack");
  const OneThread one;
  const State& s = *state_;
  const MatrixView from = s.at(s.plain_b, b), to = s.at(s.b, packed),
                   pad = s.at(s.pack_scratch, scratch);
  s.execute<3>(
      s.packing,
      {{{DNNL_ARG_FROM, from.get()}, {DNNL_ARG_TO, to.get()}, {DNNL_ARG_SCRATCHPAD, pad.get()}}});
}

void Gemm::execute(const float* a, const void* b, float* c, void* scratch) const {
  const OneThread one;
  const State& s = *state_;
  const MatrixView ma = s.at(s.a, a), mb = s.at(s.b, b), mc = s.at(s.c, c),
                   pad = s.at(s.scratch, scratch);
  s.execute<4>(s.product, {{{DNNL_ARG_SRC, ma.get()},
                            {DNNL_ARG_WEIGHTS, mb.get()},
                            {DNNL_ARG_DST, mc.get()},
                            {DNNL_ARG_SCRATCHPAD, pad.get()}}});
}

}  // namespace tessera::cpu
