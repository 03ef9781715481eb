#include <gtest/gtest.h>

#include <cmath>

#include "device/kernel_test.h"
#include "tessera/ops/attention.h"

namespace tessera {
namespace {

using testing::KernelSetting;
using testing::random_tensor;
using testing::run_kernel;

struct Case {
  const char* name;
  std::int64_t b, s, g, r, e, t;
  bool causal = true;
  double dropout = 0;
  enum class Mask { None, OfKeys, OfQueries, Prefix, Nothing } mask = Mask::None;
  std::int64_t window = 0;
  double cap = 0;
  bool slopes = false;
};
using Mask = Case::Mask;

const Case kCases[] = {
    {"one tile", 1, 64, 1, 1, 32, 64},
    {"everything of one", 1, 1, 1, 1, 1, 1},
    {"small and odd", 2, 5, 3, 1, 7, 5},
    {"several tiles, the last one partial", 2, 150, 2, 1, 16, 150},
    {"grouped queries", 2, 70, 2, 3, 24, 70},
    {"all keys are seen", 2, 70, 2, 1, 20, 70, false},
    {"more keys than queries", 1, 33, 2, 2, 12, 130, false},
    {"more queries than keys", 1, 130, 1, 1, 12, 33, false},
    {"causal, more queries than keys", 1, 130, 1, 1, 12, 33},
    {"causal, more keys than queries: the last are never seen", 1, 33, 1, 1, 12, 130},
    {"padding mask", 3, 70, 2, 1, 16, 70, false, 0, Mask::OfKeys},
    {"padding mask and causal: first queries see no key", 3, 70, 2, 2, 16, 70, true, 0,
     Mask::OfKeys},
    {"dropout, rows of whole blocks of random numbers", 2, 72, 2, 1, 16, 72, true, 0.2},
    {"dropout, rows of odd length", 2, 71, 1, 2, 16, 71, true, 0.2},
    {"dropout, rows two off", 1, 20, 2, 1, 9, 70, false, 0.5},
    {"everything", 2, 67, 2, 2, 13, 75, true, 0.1, Mask::OfKeys},
    {"wide heads", 1, 40, 1, 1, 160, 40},
    {"one query", 2, 1, 2, 2, 32, 100, false},
    {"a mask per query", 2, 70, 2, 2, 16, 150, false, 0, Mask::OfQueries},
    {"a mask per query, causal, with dropout", 2, 67, 1, 2, 13, 75, true, 0.1, Mask::OfQueries},
    {"one query of a cache that is filled up to 260", 2, 1, 3, 1, 64, 1000, false, 0, Mask::Prefix},
    {"queries at the end of a prefix", 2, 16, 2, 2, 64, 300, false, 0, Mask::Prefix},
    {"few queries, odd channels", 3, 3, 2, 1, 37, 200, false, 0, Mask::Prefix},
    {"few keys, none of them in a whole vector", 1, 2, 3, 2, 5, 3, false, 0, Mask::OfQueries},
    {"no query sees a key", 2, 5, 2, 1, 16, 130, false, 0, Mask::Nothing},
    {"one query that sees no key", 2, 1, 2, 3, 64, 130, false, 0, Mask::Nothing},
    {"few queries, several chunks of keys", 2, 4, 2, 2, 64, 700, true, 0, Mask::OfKeys},
    {"one query, chunks of keys that it does not see", 1, 1, 2, 3, 96, 800, false, 0, Mask::Prefix},
    {"one query, dropout", 2, 1, 2, 3, 20, 133, false, 0.3, Mask::OfQueries},
    {"causal, the first query of many keys", 1, 1, 2, 1, 8, 200},
    {"a window of a tile", 1, 256, 2, 1, 16, 256, true, 0, Mask::None, 64},
    {"a window of two tiles and some, the last tile partial", 2, 333, 1, 2, 13, 333, true, 0,
     Mask::None, 150},
    {"a window within a tile", 1, 200, 2, 1, 16, 200, true, 0, Mask::None, 5},
    {"a window of one key", 2, 70, 2, 1, 16, 70, true, 0, Mask::None, 1},
    {"a window of one key, not causal", 1, 70, 2, 1, 16, 70, false, 0, Mask::None, 1},
    {"a window larger than all", 2, 70, 2, 1, 16, 70, true, 0, Mask::None, 1000},
    {"a window on both sides", 2, 270, 1, 1, 24, 270, false, 0, Mask::None, 40},
    {"a window on both sides, more keys than queries", 1, 70, 1, 2, 12, 330, false, 0, Mask::None,
     100},
    {"a window, more queries than keys: the last see none", 1, 330, 1, 1, 12, 70, true, 0,
     Mask::None, 90},
    {"a window, a padding mask, dropout", 3, 139, 2, 1, 16, 139, true, 0.2, Mask::OfKeys, 37},
    {"a window, a mask per query, dropout", 2, 150, 1, 2, 14, 150, false, 0.3, Mask::OfQueries, 70},
    {"few queries, a window", 2, 3, 2, 2, 32, 900, false, 0, Mask::None, 300},
    {"a cap", 2, 150, 2, 1, 16, 150, true, 0, Mask::None, 0, 2},
    {"a cap, small and odd", 2, 5, 3, 1, 7, 5, false, 0, Mask::None, 0, 0.5},
    {"a cap, a window, a padding mask, dropout", 2, 139, 2, 2, 16, 139, true, 0.2, Mask::OfKeys, 70,
     3},
    {"a cap, a mask per query", 2, 67, 1, 2, 13, 75, false, 0, Mask::OfQueries, 0, 1},
    {"few queries, a cap", 2, 3, 2, 2, 32, 333, false, 0, Mask::OfQueries, 0, 1.5},
    {"slopes", 2, 150, 2, 2, 16, 150, true, 0, Mask::None, 0, 0, true},
    {"slopes, all keys are seen, more keys than queries", 1, 33, 2, 2, 12, 130, false, 0,
     Mask::None, 0, 0, true},
    {"slopes, a cap, a window, a mask per query, dropout", 2, 139, 2, 2, 14, 139, true, 0.2,
     Mask::OfQueries, 70, 3, true},
    {"few queries, slopes, a cap, a window", 2, 3, 2, 2, 32, 333, false, 0, Mask::OfQueries, 100,
     1.5, true},
    {"few queries, a window of some", 2, 4, 2, 2, 32, 100, true, 0, Mask::OfKeys, 2},
};

Attrs attributes(const Case& c) {
  return {c.causal,
          1 / std::sqrt(static_cast<double>(c.e)),
          c.dropout,
          c.mask != Mask::None,
          std::string("layer.dropout"),
          c.window,
          c.cap,
          c.slopes};
}

HostTensor mask_of(const Case& c) {
  const bool of_keys = c.mask == Mask::OfKeys;
  HostTensor out = random_tensor(DType::Bool, of_keys ? Shape{c.b, c.t} : Shape{c.b, c.s, c.t}, 4);
  out.set(0, 0);  // with causal: query 0 of row 0 sees nothing
  for (std::int64_t i = 0; i < out.numel() && c.mask == Mask::Nothing; ++i) out.set(i, 0);
  // Whole tiles are hidden, and from the last query of a row fewer keys than from the others.
  for (std::int64_t i = 0; i < out.numel() && c.mask == Mask::Prefix; ++i) {
    const std::int64_t query = i / c.t % c.s;
    out.set(i, i % c.t <= c.t / 4 + 10 - c.s + query ? 1 : 0);
  }
  return out;
}

/// q, k, v and, where the case has them, mask and step.
std::vector<HostTensor> operands(const Case& c) {
  std::vector<HostTensor> out = {random_tensor(DType::F32, {c.b, c.s, c.g, c.r, c.e}, 1, -2, 2),
                                 random_tensor(DType::F32, {c.b, c.t, c.g, c.e}, 2, -2, 2),
                                 random_tensor(DType::F32, {c.b, c.t, c.g, c.e}, 3)};
  if (c.mask != Mask::None) out.push_back(mask_of(c));
  if (c.slopes) out.push_back(random_tensor(DType::F32, {c.g, c.r}, 6, -0.1, 0.5));
  if (c.dropout > 0) out.push_back(HostTensor::scalar<std::int64_t>(12'345'678'901));
  return out;
}

/// dy, q, k, v, y, logsumexp and the rest.
std::vector<HostTensor> gradient_operands(const Case& c) {
  const std::vector<HostTensor> ins = operands(c);
  const std::vector<HostTensor> outs = evaluate(kAttention, ins, attributes(c));
  std::vector<HostTensor> out = {
      random_tensor(DType::F32, ins[0].shape(), 5), ins[0], ins[1], ins[2], outs[0], outs[1]};
  out.insert(out.end(), ins.begin() + 3, ins.end());
  return out;
}

// Scores are at most 4 sqrt(160) = 50, with errors of some 2^-24 of that, and an error of a score
// is a relative one of its exponential; sums of up to 150 terms add some more.
constexpr testing::Tolerance kForward = {1e-5, 1e-5};
constexpr testing::Tolerance kBackward = {1e-5, 5e-5};

TEST(Attention, EqualsTheReference) {
  for (const int threads : {1, 3}) {
    const std::unique_ptr<Device> device = make_cpu_device({threads, -1});
    for (const Case& c : kCases) {
      SCOPED_TRACE(text(c.name, ", ", threads, " threads"));
      const bool few = c.s <= 4 && c.dropout == 0;
      EXPECT_EQ(expect_like_reference(*device, kAttention, attributes(c), operands(c), kForward),
                few ? "hwy:attention_few" : "hwy:attention");
      EXPECT_EQ(expect_like_reference(*device, kAttentionGrad, attributes(c), gradient_operands(c),
                                      kBackward),
                "hwy:attention_grad");
    }
  }
}

TEST(Attention, ReadsSlicesOfOneProjection) {
  const std::unique_ptr<Device> device = make_cpu_device({2, -1});
  const Case c = {"", 2, 70, 3, 1, 16, 70};
  const std::int64_t row = 3 * 3 * 16;
  const Shape q = {70 * row, row, 16, 16, 1}, kv = {70 * row, row, 16, 1};
  for (const int operand : {0, 1, 2}) EXPECT_TRUE(device->accepts_strides(kAttention, operand));
  for (const int operand : {1, 2, 3}) EXPECT_TRUE(device->accepts_strides(kAttentionGrad, operand));
  EXPECT_FALSE(device->accepts_strides(kAttentionGrad, 0));
  KernelSetting setting;
  setting.strides = {q, kv, kv};
  expect_like_reference(*device, kAttention, attributes(c), operands(c), kForward, setting);
  setting.strides = {{}, q, kv, kv};
  expect_like_reference(*device, kAttentionGrad, attributes(c), gradient_operands(c), kBackward,
                        setting);
}

HostTensor as(DType dtype, const HostTensor& from) {
  HostTensor out(dtype, from.shape());
  for (std::int64_t i = 0; i < out.numel(); ++i) out.set(i, from.at(i));
  return out;
}

/// A kernel of 16 bits, and that of f32 on the same numbers.
struct TwoRuns {
  testing::KernelRun narrow, f32;
};
/// Operands, but logsumexp.
std::vector<HostTensor> in_dtype(DType dtype, const OpDef& op, std::vector<HostTensor> ins) {
  for (std::size_t i = 0; i < ins.size(); ++i) {
    const bool statistic = (op.statistics >> i & 1) != 0;
    if ((ins[i].dtype() == DType::F32 || is_16_bit(ins[i].dtype())) && !statistic)
      ins[i] = as(dtype, ins[i]);
  }
  return ins;
}

TwoRuns run_both(Device& device, const OpDef& op, const Case& c, DType dtype,
                 std::vector<HostTensor> ins, const KernelSetting& setting) {
  ins = in_dtype(dtype, op, std::move(ins));
  const std::vector<HostTensor> wide = in_dtype(DType::F32, op, ins);
  const Attrs attrs = attributes(c);
  return {run_kernel(device, op, attrs, ins, testing::result_types(op, attrs, ins), setting),
          run_kernel(device, op, attrs, wide, testing::result_types(op, attrs, wide), setting)};
}

/// Calls check(op, case, operands, setting) for every case, and for slices of one projection.
template <typename Check>
void each_in_16_bits(const Check& check) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    check(kAttention, c, operands(c), KernelSetting());
    check(kAttentionGrad, c, gradient_operands(c), KernelSetting());
  }
  SCOPED_TRACE("slices of one projection");
  const Case c = {"", 2, 70, 3, 1, 16, 70};
  const std::int64_t row = 3 * 3 * 16;
  const Shape q = {70 * row, row, 16, 16, 1}, kv = {70 * row, row, 16, 1};
  KernelSetting setting;
  setting.strides = {q, kv, kv};
  check(kAttention, c, operands(c), setting);
  setting.strides = {{}, q, kv, kv};
  check(kAttentionGrad, c, gradient_operands(c), setting);
}

TEST(Attention, RoundsResultsOfF32OnceIn16Bits) {
  const std::unique_ptr<Device> device =
      make_cpu_device({.threads = 2, .choices = machine_choices().at_most(Isa::Avx512)});
  for (const DType dtype : {DType::BF16, DType::F16}) {
    SCOPED_TRACE(to_text(dtype));
    each_in_16_bits([&](const OpDef& op, const Case& c, const std::vector<HostTensor>& ins,
                        const KernelSetting& setting) {
      const TwoRuns runs = run_both(*device, op, c, dtype, ins, setting);
      EXPECT_EQ(runs.narrow.kernel, runs.f32.kernel);
      for (std::size_t i = 0; i < runs.f32.outs.size(); ++i) {
        const HostTensor& out = runs.narrow.outs[i];
        EXPECT_EQ(hash128_text(out.bytes()),
                  hash128_text(as(out.dtype(), runs.f32.outs[i]).bytes()))
            << op.name << ", result " << i;
      }
    });
  }
}

/// Products of bf16 are exact in f32, so two kernels differ by two errors of f32 and roundings.
TEST(Attention, ProductsOfBf16AreThoseOfF32) {
  if (machine_choices().isa < Isa::Avx512Bf16) GTEST_SKIP() << "no products of bf16 here";
  const std::unique_ptr<Device> device = make_cpu_device({2, -1});
  each_in_16_bits([&](const OpDef& op, const Case& c, const std::vector<HostTensor>& ins,
                      const KernelSetting& setting) {
    const bool few = &op == &kAttention && c.s <= 4 && c.dropout == 0;
    const TwoRuns runs = run_both(*device, op, c, DType::BF16, ins, setting);
    EXPECT_EQ(runs.narrow.kernel,
              text(c.e % 2 == 0 && !few ? "avx512-bf16:" : "hwy:", op.name, few ? "_few" : ""));
    for (std::size_t i = 0; i < runs.f32.outs.size(); ++i) {
      SCOPED_TRACE(text(op.name, ", result ", i));
      const HostTensor& want = runs.f32.outs[i];
      const double inside = testing::rounded_inside(runs.narrow.kernel, runs.narrow.outs[i]);
      testing::expect_close(runs.narrow.outs[i], want,
                            {0x1p-8 + 2 * kBackward.relative, 2 * kBackward.absolute + inside});
    }
  });
}

/// Equal to the reference kernel on the same shard.
void expect_like_reference_on_shard(Device& device, const OpDef& op, const Case& c,
                                    const std::vector<HostTensor>& ins,
                                    const KernelSetting& setting, testing::Tolerance tolerance,
                                    std::int64_t valid_rows, int dim_of_rows) {
  testing::ReferenceDevice reference;
  const TensorTypes types = testing::result_types(op, attributes(c), ins);
  const testing::KernelRun fast = run_kernel(device, op, attributes(c), ins, types, setting);
  const testing::KernelRun plain = run_kernel(reference, op, attributes(c), ins, types, setting);
  EXPECT_NE(fast.kernel, plain.kernel);
  for (std::size_t i = 0; i < types.size(); ++i) {
    SCOPED_TRACE(text(op.name, ", result ", i));
    HostTensor a = fast.outs[i], b = plain.outs[i];
    // Beyond the logical extent, content is undefined.
    const int dim = i == 0 ? 1 : dim_of_rows;
    for (std::int64_t at = 0; at < a.numel() && dim >= 0; ++at) {
      if (at / a.shape().strides()[dim] % a.shape()[dim] >= valid_rows) a.set(at, 0), b.set(at, 0);
    }
    testing::Tolerance allowed = tolerance;
    if (is_16_bit(types[i].dtype)) allowed.relative += 0x1p-7;
    allowed.absolute += testing::rounded_inside(fast.kernel, b);
    testing::expect_close(a, b, allowed);
  }
}

/// Of `of_shard`: a mask for all queries, or for each.
void expect_shard_and_micro_batch_known(Mask of_shard, DType dtype, std::int64_t window) {
  const std::unique_ptr<Device> device = make_cpu_device({2, -1});
  // Rows 4 and 5 of a batch of 6, heads 2 and 3 of 4, queries 70 ... 139 of 133: seven rows are
  // padding.
  const Case c = {"", 2, 70, 2, 2, 16, 150, true, 0.3, of_shard, window};
  const auto shard_q = [](Shape global, Shape offset, Shape step) {
    return ShardInfo{global, offset, step, global};
  };
  const ShardInfo q = shard_q({6, 133, 4, 2, 16}, {0, 70, 2, 0, 0}, {2, 0, 0, 0, 0});
  const ShardInfo kv = shard_q({6, 147, 4, 16}, {0, 0, 2, 0}, {2, 0, 0, 0});
  const ShardInfo rows = shard_q({6, 4, 2, 133}, {0, 2, 0, 70}, {2, 0, 0, 0});
  const ShardInfo mask = of_shard == Mask::OfKeys ? shard_q({6, 147}, {0, 0}, {2, 0})
                                                  : shard_q({6, 133, 147}, {0, 70, 0}, {2, 0, 0});
  const ShardInfo step{};
  KernelSetting setting;
  setting.microbatch = 2;
  setting.ins = {q, kv, kv, mask, step};
  setting.outs = {q, rows};
  std::vector<HostTensor> ins = in_dtype(dtype, kAttention, operands(c));
  for (std::int64_t i = 0; i < ins[1].numel(); ++i) {
    if (i / (2 * 16) % 150 < 147) continue;
    for (const std::size_t operand : {1, 2}) ins[operand].set(i, 1e30);  // must not be read
  }
  expect_like_reference_on_shard(*device, kAttention, c, ins, setting, kForward, 63, 3);
  testing::ReferenceDevice reference;
  const std::vector<HostTensor> outs =
      run_kernel(reference, kAttention, attributes(c), ins,
                 testing::result_types(kAttention, attributes(c), ins), setting)
          .outs;
  std::vector<HostTensor> grad_ins = {as(dtype, random_tensor(DType::F32, ins[0].shape(), 5)),
                                      ins[0],
                                      ins[1],
                                      ins[2],
                                      outs[0],
                                      outs[1],
                                      ins[3],
                                      ins[4]};
  for (const std::size_t operand : {0, 1, 4, 5}) {  // reduced over queries: their padding is zero
    HostTensor& x = grad_ins[operand] = grad_ins[operand].clone();
    const std::int64_t row = operand == 5 ? 1 : std::int64_t{2} * 2 * 16;
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      if (i / row % 70 >= 63) x.set(i, 0);
    }
  }
  setting.ins = {q, q, kv, kv, q, rows, mask, step};
  setting.outs = {q, kv, kv};
  expect_like_reference_on_shard(*device, kAttentionGrad, c, grad_ins, setting, kBackward, 63, -1);
}

TEST(Attention, KnowsItsShardAndItsMicroBatch) {
  for (const DType dtype : {DType::F32, DType::BF16}) {
    SCOPED_TRACE(text(dtype));
    for (const Mask mask : {Mask::OfKeys, Mask::OfQueries}) {
      for (const std::int64_t window : {0, 50})
        expect_shard_and_micro_batch_known(mask, dtype, window);
    }
  }
}

TEST(Attention, GivesTheSameBitsWithAnyNumberOfThreads) {
  const Case c = {"", 2, 130, 2, 2, 16, 130, true, 0.1};
  const auto bits = [&](int threads, const OpDef& op, const std::vector<HostTensor>& ins) {
    const std::unique_ptr<Device> device = make_cpu_device({threads, -1});
    std::string out;
    for (const HostTensor& result :
         run_kernel(*device, op, attributes(c), ins, testing::result_types(op, attributes(c), ins))
             .outs) {
      out += hash128_text(result.bytes());
    }
    return out;
  };
  for (const DType dtype : {DType::F32, DType::BF16}) {
    SCOPED_TRACE(text(dtype));
    const std::vector<HostTensor> ins = in_dtype(dtype, kAttention, operands(c)),
                                  grad_ins = in_dtype(dtype, kAttentionGrad, gradient_operands(c));
    EXPECT_EQ(bits(1, kAttention, ins), bits(4, kAttention, ins));
    EXPECT_EQ(bits(1, kAttentionGrad, grad_ins), bits(4, kAttentionGrad, grad_ins));
  }
  const Case few = {"", 2, 2, 3, 2, 20, 700, false, 0, Mask::OfQueries};
  const auto few_bits = [&](int threads) {
    const std::unique_ptr<Device> device = make_cpu_device({threads, -1});
    std::string out;
    for (const HostTensor& result :
         run_kernel(*device, kAttention, attributes(few), operands(few),
                    testing::result_types(kAttention, attributes(few), operands(few)))
             .outs)
      out += hash128_text(result.bytes());
    return out;
  };
  for (const int threads : {2, 3, 8}) EXPECT_EQ(few_bits(1), few_bits(threads)) << threads;
}

TEST(Attention, NotANumberComesThrough) {
  // An overflow in a query must be found by whoever looks at the gradients.
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  const Case c = {"", 1, 70, 1, 1, 16, 70};
  std::vector<HostTensor> ins = operands(c);
  ins[0].set(69 * 16, NAN);
  const testing::KernelRun run = run_kernel(*device, kAttention, attributes(c), ins,
                                            testing::result_types(kAttention, attributes(c), ins));
  EXPECT_TRUE(std::isnan(run.outs[0].at(69 * 16)));
  EXPECT_TRUE(std::isnan(run.outs[1].at(69)));
  EXPECT_FALSE(std::isnan(run.outs[0].at(68 * 16)));
  const Case few = {"", 1, 1, 2, 1, 16, 300, false};
  ins = operands(few);
  ins[1].set(299 * 2 * 16, NAN);  // the last key of head 0, in the second chunk
  const testing::KernelRun one =
      run_kernel(*device, kAttention, attributes(few), ins,
                 testing::result_types(kAttention, attributes(few), ins));
  EXPECT_TRUE(std::isnan(one.outs[0].at(0)));
  EXPECT_TRUE(std::isnan(one.outs[1].at(0)));
  EXPECT_FALSE(std::isnan(one.outs[0].at(16)));
}

}  // namespace
}  // namespace tessera
