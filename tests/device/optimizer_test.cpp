/// First moments of optimizers with rates of decay near 1, where 1 - beta in f32 is off by 1e-5 and
/// more: by the kernels of the CPU and by the reference loops, with and without a 16-bit copy.

#include "device/kernel_test.h"
#include "tessera/ops/optimizer_ops.h"

namespace tessera {
namespace {

using testing::ReferenceDevice;

/// Moments of a first step, from zeros: m = (1 - beta1) g, v = (1 - beta2) g^2.
void expect_first_moments(Device& device, const OpDef& op, const Attrs& attrs, double beta1,
                          double beta2, int m) {
  const Shape shape = {3, 37};  // whole vectors and a rest
  const HostTensor g = testing::random_tensor(DType::F32, shape, 1), zero(DType::F32, shape);
  std::vector<HostTensor> ins = {testing::random_tensor(DType::F32, shape, 2), zero, zero, g};
  // Adam has a rate before them, which does not matter here.
  if (&op == &kAdam) ins.push_back(HostTensor::scalar<float>(0.1f));
  ins.push_back(HostTensor::scalar<float>(1));
  ins.push_back(HostTensor::scalar<float>(static_cast<float>(1 - beta1)));
  ins.push_back(HostTensor::scalar<float>(static_cast<float>(1 - beta2)));
  HostTensor ok(DType::Bool, {});
  ok.set(0, 1);
  ins.push_back(ok);
  const auto run =
      testing::run_kernel(device, op, attrs, ins, testing::result_types(op, attrs, ins));
  HostTensor first(DType::F64, shape), second(DType::F64, shape);
  for (std::int64_t i = 0; i < g.numel(); ++i) {
    first.set(i, (1 - beta1) * g.at(i));
    second.set(i, (1 - beta2) * g.at(i) * g.at(i));
  }
  // Three roundings of 2^-24.
  testing::expect_close(run.outs[static_cast<std::size_t>(m)], first, {2e-7, 0});
  testing::expect_close(run.outs[static_cast<std::size_t>(m) + 1], second, {2e-7, 0});
}

TEST(Optimizer, ConstantsAreOfDoublePrecision) {
  const std::unique_ptr<Device> cpu = make_cpu_device({1, -1});
  ReferenceDevice reference;
  for (Device* device : {cpu.get(), static_cast<Device*>(&reference)}) {
    for (const double beta2 : {0.999, 0.9999, 0.99999}) {
      SCOPED_TRACE(text(device->name(), ", beta2 ", beta2));
      for (const bool decoupled : {true, false}) {
        const double decay = decoupled ? 0.1 : 0.0;
        expect_first_moments(*device, kAdam, {0.99, beta2, 1e-8, decay, decoupled}, 0.99, beta2, 1);
        for (const DType copy : {DType::BF16, DType::F16})
          expect_first_moments(*device, kAdam, {0.99, beta2, 1e-8, decay, decoupled, copy}, 0.99,
                               beta2, 1);
      }
      expect_first_moments(*device, kLambDirection, {0.99, beta2, 1e-6, 0.1}, 0.99, beta2, 1);
    }
  }
}

}  // namespace
}  // namespace tessera
