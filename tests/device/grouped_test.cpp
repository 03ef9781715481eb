/// Products of rows by groups: against plain loops, however the rows are spread over the groups.

#include "tessera/ops/matmul.h"

#include <gtest/gtest.h>

#include "device/kernel_test.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

using testing::expect_like_reference;
using testing::random_tensor;

struct RowSpread {
  const char* name;
  std::int64_t rows, chosen, groups, a, b;
  double low, high;  // of ids
  bool shared;       // a row of x for all ids of the last dim
};

constexpr RowSpread kRowSpreads[] = {
    {"evenly", 70, 2, 4, 48, 64, 0, 4, true},
    {"some out of range, sizes of no grain", 37, 3, 5, 33, 71, -2, 7, true},
    {"all to one group", 300, 1, 6, 40, 130, 3, 4, true},
    {"to no group", 9, 2, 3, 16, 16, -5, -1, true},
    {"groups without rows", 129, 2, 9, 24, 200, 7, 9, true},
    {"one row", 1, 2, 8, 64, 96, 0, 8, true},
    {"a row for each id", 50, 2, 3, 32, 48, 0, 3, false},
    {"of one element", 5, 1, 2, 1, 1, 0, 2, false},
};

HostTensor rows_of_spread(const RowSpread& s, DType dtype, std::int64_t width, bool shared,
                          int seed) {
  return random_tensor(dtype, shared ? Shape{s.rows, width} : Shape{s.rows, s.chosen, width},
                       static_cast<std::uint64_t>(seed));
}

/// Sums of `terms` products of numbers from -1 to 1; a result of bf16 is rounded once.
testing::Tolerance tolerance_of(std::int64_t terms, DType out) {
  const double of_sums = 4e-7 * static_cast<double>(terms + 8);
  return {out == DType::BF16 ? 0x1p-8 : 1e-5, of_sums};
}

using GroupDevices = std::array<std::unique_ptr<Device>, 2>;
GroupDevices devices_of_groups(int threads) {
  return {
      make_cpu_device({.threads = threads}),
      make_cpu_device({.threads = threads, .choices = machine_choices().at_most(Isa::Avx512Bf16)})};
}

TEST(Grouped, MatmulEqualsTheReference) {
  for (const int threads : {1, 3}) {
    const GroupDevices devices = devices_of_groups(threads);
    for (const RowSpread& s : kRowSpreads) {
      const HostTensor ids = random_tensor(DType::I32, {s.rows, s.chosen}, 1, s.low, s.high);
      for (const DType dtype : {DType::F32, DType::BF16}) {
        const HostTensor x = rows_of_spread(s, dtype, s.a, s.shared, 2);
        for (const bool trans : {false, true}) {
          SCOPED_TRACE(
              text(s.name, ", ", threads, " threads, ", dtype, trans ? ", transposed" : ""));
          const HostTensor w = random_tensor(
              dtype, trans ? Shape{s.groups, s.b, s.a} : Shape{s.groups, s.a, s.b}, 3);
          for (const std::unique_ptr<Device>& each : devices) {
            const std::string kernel =
                expect_like_reference(*each, kGroupedMatmul, {trans, false, true, s.groups},
                                      {ids, x, w}, tolerance_of(s.a, dtype));
            if (dtype == DType::F32) {
              EXPECT_NE(kernel.find(":grouped"), std::string::npos);
            }
          }
        }
      }
    }
  }
}

TEST(Grouped, OuterEqualsTheReference) {
  for (const int threads : {1, 3}) {
    const GroupDevices devices = devices_of_groups(threads);
    for (const RowSpread& s : kRowSpreads) {
      const HostTensor ids = random_tensor(DType::I32, {s.rows, s.chosen}, 1, s.low, s.high),
                       onto = random_tensor(DType::F32, {s.groups, s.a, s.b}, 4);
      const Attrs attrs = {s.groups, s.groups, DType::F32};
      for (const DType dtype : {DType::F32, DType::BF16}) {
        SCOPED_TRACE(text(s.name, ", ", threads, " threads, ", dtype));
        const HostTensor p = rows_of_spread(s, dtype, s.a, s.shared, 2),
                         q = rows_of_spread(s, dtype, s.b, false, 3);
        const testing::Tolerance close = tolerance_of(s.rows * s.chosen, DType::F32);
        for (const std::unique_ptr<Device>& each : devices) {
          expect_like_reference(*each, kGroupedOuter, attrs, {ids, p, q}, close);
          for (const int in_place : {-1, 3}) {
            testing::KernelSetting setting;
            setting.in_place = in_place;
            expect_like_reference(*each, kGroupedOuter, attrs, {ids, p, q, onto}, close, setting);
          }
        }
      }
    }
  }
}

/// A rank computes the rows of its groups, of which the last may be padding.
TEST(Grouped, ShardsOfGroupsAddUp) {
  const std::unique_ptr<Device> device = make_cpu_device({.threads = 2});
  const std::int64_t groups = 5, here = 2, a = 20, b = 24;
  const HostTensor ids = random_tensor(DType::I32, {60, 2}, 1, -1, 6),
                   x = random_tensor(DType::F32, {60, a}, 2),
                   w = random_tensor(DType::F32, {groups, a, b}, 3),
                   dy = random_tensor(DType::F32, {60, 2, b}, 4);
  const HostTensor whole = evaluate(kGroupedMatmul, {ids, x, w}, {false, false, false, groups})[0],
                   outer = evaluate(kGroupedOuter, {ids, x, dy}, {groups, groups})[0];
  HostTensor sum(DType::F32, whole.shape());
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    HostTensor part(DType::F32, {here, a, b});
    for (std::int64_t i = 0; i < part.numel(); ++i) {
      const std::int64_t at = rank * here * a * b + i;
      part.set(i, at < w.numel() ? w.at(at) : std::nan(""));
    }
    const ShardInfo all_ids{{60, 2}, {0, 0}, {0, 0}, {60, 2}},
        rows{{60, a}, {0, 0}, {0, 0}, {60, a}},
        cotangents{{60, 2, b}, {0, 0, 0}, {0, 0, 0}, {60, 2, b}},
        matrices{{groups, a, b}, {rank * here, 0, 0}, {0, 0, 0}, {groups, a, b}};
    testing::KernelSetting setting;
    setting.ins = {all_ids, rows, matrices};
    setting.outs = {cotangents};
    const HostTensor y =
        testing::run_kernel(*device, kGroupedMatmul, {false, false, false, groups}, {ids, x, part},
                            {{DType::F32, {60, 2, b}, {}}}, setting)
            .outs[0];
    for (std::int64_t i = 0; i < y.numel(); ++i) sum.set(i, sum.at(i) + y.at(i));
    setting.ins = {all_ids, rows, cotangents};
    setting.outs = {matrices};
    const HostTensor dw = testing::run_kernel(*device, kGroupedOuter, {here, groups}, {ids, x, dy},
                                              {{DType::F32, {here, a, b}, {}}}, setting)
                              .outs[0];
    for (std::int64_t i = 0; i < dw.numel(); ++i) {
      const std::int64_t at = rank * here * a * b + i;
      if (at < outer.numel()) {
        EXPECT_NEAR(dw.at(i), outer.at(at), 1e-4);
      }
    }
  }
  testing::expect_close(sum, whole, {1e-5, 1e-5});
}

}  // namespace
}  // namespace tessera
