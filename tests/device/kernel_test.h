#pragma once
/// Holds a device's kernel against the interpreter: same op, same operands, the truth computed in
/// f64.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tessera/base/hash.h"
#include "tessera/base/philox.h"
#include "tessera/device/cpu/in_f32.h"
#include "tessera/device/cpu/kernels.h"
#include "tessera/device/cpu/widened.h"
#include "tessera/device/device.h"
#include "tessera/ops/interpret.h"

namespace tessera::testing {

/// Uniform in [low, high), the same for the same seed; bools are true where the number is positive,
/// integers rounded down.
inline HostTensor random_tensor(DType dtype, Shape shape, std::uint64_t seed, double low = -1,
                                double high = 1) {
  HostTensor out(dtype, shape);
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    const double u = unit_float(philox_bits(seed, static_cast<std::uint64_t>(i), 0));
    const double x = low + (high - low) * u;
    out.set(i, dtype == DType::Bool ? x > 0 : is_float(dtype) ? x : std::floor(x));
  }
  return out;
}

struct Tolerance {
  double relative = 0, absolute = 0;
};

/// Of the magnitudes.
inline double largest(const HostTensor& x) {
  double out = 0;
  for (std::int64_t i = 0; i < x.numel(); ++i) out = std::max(out, std::abs(x.at(i)));
  return out;
}

/// By how much results of a kernel of 16-bit floats may differ beside their own rounding: attention
/// by AVX512-BF16 rounds probabilities and gradients of scores before they are multiplied, each by
/// 2^-9 of itself at most. Sums of such products may be small where their terms are not.
inline double rounded_inside(std::string_view kernel, const HostTensor& result) {
  const bool rounds = kernel.starts_with("avx512-bf16:attention") && is_16_bit(result.dtype());
  return rounds ? 0x1p-8 * largest(result) : 0;
}

/// |actual - expected| <= absolute + relative * |expected| everywhere; not-a-number only equals
/// itself.
inline void expect_close(const HostTensor& actual, const HostTensor& expected,
                         Tolerance tolerance) {
  ASSERT_EQ(actual.shape(), expected.shape());
  int wrong = 0;
  for (std::int64_t i = 0; i < actual.numel() && wrong < 5; ++i) {
    const double a = actual.at(i), e = expected.at(i);
    const bool same = a == e || (std::isnan(a) && std::isnan(e)) ||
                      std::abs(a - e) <= tolerance.absolute + tolerance.relative * std::abs(e);
    if (!same)
      ADD_FAILURE() << "element " << i << " is " << a << ", expected " << e << (++wrong, "");
  }
}

/// How a kernel is asked for and called, beyond its operands.
struct KernelSetting {
  std::vector<Shape> strides;        // per operand; an empty shape or vector: dense
  std::vector<ShardInfo> ins, outs;  // empty: whole tensors
  std::int64_t microbatch = 0;
  std::uint64_t seed = 1;  // of random ops, as in Interpretation
  int in_place = -1;       // result 0 is written over this operand
};

struct KernelRun {
  std::string kernel;  // its name
  std::vector<HostTensor> outs;
};

namespace detail {

constexpr std::size_t kGuard = 256;

/// Bytes with a pattern behind them that must survive. 64-byte aligned.
class Guarded {
 public:
  explicit Guarded(std::int64_t bytes)
      : size_(static_cast<std::size_t>(bytes)),
        memory_(new (std::align_val_t{64}) unsigned char[size_ + kGuard]) {
    std::memset(memory_.get(), 0xFF, size_ + kGuard);  // as floats: not-a-number
  }
  unsigned char* data() { return memory_.get(); }
  bool intact() const {
    for (std::size_t i = size_; i < size_ + kGuard; ++i) {
      if (memory_.get()[i] != 0xFF) return false;
    }
    return true;
  }

 private:
  struct Free {
    void operator()(unsigned char* p) const { ::operator delete[](p, std::align_val_t{64}); }
  };
  std::size_t size_;
  std::unique_ptr<unsigned char, Free> memory_;
};

inline std::int64_t extent(const Shape& shape, const Shape& strides) {
  std::int64_t last = 0;
  for (int d = 0; d < shape.ndim(); ++d) last += (shape[d] - 1) * strides[d];
  return shape.numel() == 0 ? 0 : last + 1;
}

/// Copies the dense `from` to `to`, where it lies at `strides`.
inline void lay_out(const HostTensor& from, const Shape& strides, unsigned char* to) {
  const Shape &shape = from.shape(), dense = shape.strides();
  const std::size_t size = static_cast<std::size_t>(size_of(from.dtype()));
  for (std::int64_t i = 0; i < from.numel(); ++i) {
    std::int64_t at = 0;
    for (int d = 0; d < shape.ndim(); ++d) at += i / dense[d] % shape[d] * strides[d];
    std::memcpy(to + static_cast<std::size_t>(at) * size,
                from.bytes().data() + static_cast<std::size_t>(i) * size, size);
  }
}

}  // namespace detail

/// Makes the kernel and runs it twice (a kernel must not spoil its own state); results start as
/// not-a-number. `out_types`: what the op's type rule gives.
inline KernelRun run_kernel(Device& device, const OpDef& op, const Attrs& attrs,
                            const std::vector<HostTensor>& ins, const TensorTypes& out_types,
                            const KernelSetting& setting = {}) {
  OpCall::Types in_types, results;
  for (const HostTensor& in : ins) in_types.push_back(&in.type());
  for (const TensorType& type : out_types) results.push_back(&type);
  std::vector<Shape> strides;
  for (std::size_t i = 0; i < ins.size(); ++i) {
    const bool given = i < setting.strides.size() && !setting.strides[i].empty();
    strides.push_back(given ? setting.strides[i] : ins[i].shape().strides());
  }
  const int key_attr = op.attrs.find("key");
  const std::uint64_t key =
      key_attr < 0 ? 0
                   : random_key(setting.seed,
                                std::get<std::string>(attrs[static_cast<std::size_t>(key_attr)]));
  const std::unique_ptr<Kernel> kernel =
      device.make_kernel({OpCall(op, in_types, attrs, results), strides, setting.ins, setting.outs,
                          key, setting.seed});

  KernelRun out{std::string(kernel->name()), {}};
  for (int run = 0; run < 2; ++run) {
    std::vector<detail::Guarded> in_bytes, out_bytes;
    std::vector<const void*> in_data;
    std::vector<void*> out_data;
    for (std::size_t i = 0; i < ins.size(); ++i) {
      in_bytes.emplace_back(detail::extent(ins[i].shape(), strides[i]) * size_of(ins[i].dtype()));
      detail::lay_out(ins[i], strides[i], in_bytes.back().data());
    }
    for (const TensorType& type : out_types) out_bytes.emplace_back(type.bytes());
    for (detail::Guarded& bytes : in_bytes) in_data.push_back(bytes.data());
    for (detail::Guarded& bytes : out_bytes) out_data.push_back(bytes.data());
    if (setting.in_place >= 0) {
      out_data[0] = in_bytes[static_cast<std::size_t>(setting.in_place)].data();
    }
    detail::Guarded workspace(kernel->workspace_bytes());
    kernel->run({in_data.data(), out_data.data(), workspace.data(), setting.microbatch});
    EXPECT_TRUE(workspace.intact()) << out.kernel << " writes beyond its workspace";
    for (const detail::Guarded& bytes : in_bytes) EXPECT_TRUE(bytes.intact()) << out.kernel;
    for (const detail::Guarded& bytes : out_bytes) EXPECT_TRUE(bytes.intact()) << out.kernel;
    out.outs.clear();
    for (std::size_t i = 0; i < out_types.size(); ++i) {
      out.outs.emplace_back(out_types[i]);
      std::memcpy(out.outs.back().bytes().data(), out_data[i], out.outs.back().bytes().size());
    }
  }
  return out;
}

/// Gives reference kernels only: for run_kernel on shards, which the interpreter's evaluate does
/// not know.
class ReferenceDevice final : public Device {
 public:
  std::string name() const override { return "reference"; }
  std::unique_ptr<Kernel> make_kernel(const KernelRequest& request) override {
    if (!cpu::has_16_bit(request.call)) return cpu::make_reference_kernel(request);
    return cpu::make_widened(request, pool_, &cpu::make_reference_kernel, kNotCut);
  }
  bool accepts_strides(const OpDef&, int) const override { return true; }
  void* allocate(Memory, std::int64_t) override { return nullptr; }
  std::shared_ptr<std::byte> allocate_for_several(std::int64_t) override { return nullptr; }
  void release(void*) override {}
  void fill(void*, std::byte, std::int64_t) override {}
  void copy(void*, const void*, std::int64_t) override {}
  void expect_copies(std::int64_t) override {}
  std::uint64_t start_copy(void*, const void*, std::int64_t) override { return 0; }
  void wait_copy(std::uint64_t) override {}

 private:
  static constexpr std::int64_t kNotCut = std::int64_t{1} << 60;
  cpu::Pool pool_{1, -1};
};

inline TensorTypes result_types(const OpDef& op, const Attrs& attrs,
                                const std::vector<HostTensor>& ins) {
  OpCall::Types in_types;
  for (const HostTensor& in : ins) in_types.push_back(&in.type());
  return op.infer(OpCall(op, in_types, attrs));
}

/// Runs the op on the device and in the interpreter (in f64) and compares all results. Returns the
/// kernel's name, so that a test can say which one it means to test.
inline std::string expect_like_reference(Device& device, const OpDef& op, const Attrs& attrs,
                                         const std::vector<HostTensor>& ins, Tolerance tolerance,
                                         const KernelSetting& setting = {}) {
  const TensorTypes types = result_types(op, attrs, ins);
  Interpretation how;
  how.seed = setting.seed;
  how.f64 = true;
  const std::vector<HostTensor> truth = evaluate(op, ins, attrs, how);
  const KernelRun run = run_kernel(device, op, attrs, ins, types, setting);
  for (std::size_t i = 0; i < truth.size(); ++i) {
    SCOPED_TRACE(text(run.kernel, ", result ", i));
    expect_close(run.outs[i], truth[i], tolerance);
  }
  return run.kernel;
}

}  // namespace tessera::testing
