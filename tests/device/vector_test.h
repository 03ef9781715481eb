#pragma once
/// A device with the vector kernels alone: a test sees which ops they take and which are left to
/// the reference.

#include <hwy/targets.h>

#include "device/kernel_test.h"
#include "tessera/device/cpu/vector.h"
#include "tessera/ops/fused.h"

namespace tessera::testing {

class VectorDevice final : public Device {
 public:
  explicit VectorDevice(int threads) : pool_(threads, -1) {}
  std::string name() const override { return "vector"; }
  std::unique_ptr<Kernel> make_kernel(const KernelRequest& request) override {
    for (const cpu::KernelEntry& entry : cpu::vector_kernels()) {
      if (!entry.is_for(request.call.op())) continue;
      if (std::unique_ptr<Kernel> kernel = entry.make(request, pool_)) return kernel;
    }
    return cpu::make_reference_kernel(request);
  }
  bool accepts_strides(const OpDef& op, int operand) const override {
    return cpu::vector_accepts_strides(op, operand);
  }
  void* allocate(Memory, std::int64_t) override { return nullptr; }
  std::shared_ptr<std::byte> allocate_for_several(std::int64_t) override { return nullptr; }
  void release(void*) override {}
  void fill(void*, std::byte, std::int64_t) override {}
  void copy(void*, const void*, std::int64_t) override {}
  void expect_copies(std::int64_t) override {}
  std::uint64_t start_copy(void*, const void*, std::int64_t) override { return 0; }
  void wait_copy(std::uint64_t) override {}

 private:
  cpu::Pool pool_;
};

inline KernelSetting in_place(int operand) {
  KernelSetting out;
  out.in_place = operand;
  return out;
}

inline KernelSetting strided(std::vector<Shape> strides) {
  KernelSetting out;
  out.strides = std::move(strides);
  return out;
}

/// Kernels made while it lives do without some instruction sets of this machine.
class Without {
 public:
  explicit Without(std::int64_t targets) { hwy::DisableTargets(targets | ~before_); }
  ~Without() { hwy::DisableTargets(~before_); }
  Without(const Without&) = delete;
  Without& operator=(const Without&) = delete;

 private:
  const std::int64_t before_ = hwy::SupportedTargets();  // those of a lesser machine: see isa_test
};

struct Instructions {
  int threads;
  const char* name;
  std::int64_t without;
};
inline constexpr std::int64_t kAvx512 = HWY_AVX3 | HWY_AVX3_DL;
inline constexpr Instructions kInstructions[] = {
    {1, "the best", 0},
    {2, "AVX2", kAvx512},
    {3, "the baseline", kAvx512 | HWY_AVX2 | HWY_SSE4 | HWY_SSSE3}};

/// As expect_like_reference, on 1, 2 and 3 threads, each with other instructions; the kernel must
/// be `kernel`.
inline void expect_vector(std::string_view kernel, const OpDef& op, const Attrs& attrs,
                          const std::vector<HostTensor>& ins, Tolerance tolerance,
                          const KernelSetting& setting = {}) {
  for (const Instructions& c : kInstructions) {
    SCOPED_TRACE(text(op.name, " on ", c.threads, " threads with ", c.name, " instructions"));
    const Without without(c.without);
    VectorDevice device(c.threads);
    EXPECT_EQ(expect_like_reference(device, op, attrs, ins, tolerance, setting), kernel);
  }
}

/// The kernel of an op whose operand 0 has 16 bits is the one that it has in f32, and its results
/// are those in f32, rounded. Returns these as they are in f32.
inline std::vector<HostTensor> expect_f32_rounded(Device& device, const OpDef& op,
                                                  const Attrs& attrs, std::vector<HostTensor> ins,
                                                  const KernelSetting& setting = {}) {
  const KernelRun got = run_kernel(device, op, attrs, ins, result_types(op, attrs, ins), setting);
  ins[0] = ins[0].cast(DType::F32);
  KernelRun want = run_kernel(device, op, attrs, ins, result_types(op, attrs, ins), setting);
  EXPECT_EQ(got.kernel, want.kernel);
  for (std::size_t i = 0; i < want.outs.size(); ++i)
    expect_close(got.outs[i], want.outs[i].cast(got.outs[i].dtype()), {});
  return std::move(want.outs);
}

/// The results of a body each of whose nodes is a call of its own, by the kernels of `device`.
inline std::vector<HostTensor> one_by_one(Device& device, const Graph& body,
                                          const std::vector<HostTensor>& ins) {
  std::vector<std::vector<HostTensor>> values;
  const auto value = [&](ValueId id) -> const HostTensor& {
    return values[static_cast<std::size_t>(id.node)][static_cast<std::size_t>(id.index)];
  };
  for (const Node& node : body.nodes()) {
    if (node.op == &kBatch) {
      values.push_back({ins.at(std::stoul(std::get<std::string>(node.attrs[0])))});
    } else if (node.op == &kConstant) {
      values.push_back({HostTensor(node.type())});
      values.back()[0].set(0, std::get<double>(node.attrs[0]));
    } else {
      std::vector<HostTensor> read;
      for (const ValueId input : node.inputs) read.push_back(value(input));
      TensorTypes types;
      for (const Result& result : node.results) types.push_back(result.type);
      values.push_back(run_kernel(device, *node.op, node.attrs, read, types).outs);
    }
  }
  std::vector<HostTensor> out;
  for (const Output& output : body.outputs()) out.push_back(value(output.value));
  return out;
}

/// A fused body has the bits that its ops have one by one, on 1, 2 and 3 threads; the kernel must
/// be `kernel`.
inline void expect_bits_of_ops(std::string_view kernel, const Attrs& attrs,
                               const std::vector<HostTensor>& ins,
                               const KernelSetting& setting = {}) {
  const TensorTypes types = result_types(kFused, attrs, ins);
  const Graph& body = *std::get<std::shared_ptr<const Graph>>(attrs[0]);
  for (const Instructions& c : kInstructions) {
    SCOPED_TRACE(text("on ", c.threads, " threads with ", c.name, " instructions"));
    const Without without(c.without);
    VectorDevice device(c.threads);
    const std::vector<HostTensor> want = one_by_one(device, body, ins);
    const KernelRun run = run_kernel(device, kFused, attrs, ins, types, setting);
    EXPECT_EQ(run.kernel, kernel);
    for (std::size_t i = 0; i < want.size(); ++i) {
      SCOPED_TRACE(text("result ", i));
      expect_close(run.outs[i], want[i], {});
    }
  }
}

}  // namespace tessera::testing
