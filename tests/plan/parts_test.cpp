/// Operands that are computed where a bucket will hold them: which are, what is copied, and whether
/// ranks sum in place.

#include <gtest/gtest.h>

#include "tessera/ir/parse.h"
#include "tessera/ops/table.h"
#include "tessera/passes/bucket.h"
#include "tessera/passes/partition.h"
#include "tessera/plan/lower.h"
#include "tessera/plan/overlap.h"

namespace tessera {
namespace {

struct PartsCase {
  const char *why, *graph, *out;
};

const PartsCase kPartsCases[] = {
    {"gradients lie in the bucket, and it is summed in place",
     R"(graph placed mesh dp=2
%0 = batch() name="x" dtype=f32 shape=[4,2] : f32[4,2] at [dp,-]
%1 = sum(%0) dims=[0] keep=false : f32[2] at [-]+dp bwd
%2 = exp(%0) : f32[4,2] at [dp,-] bwd
%3 = sum(%2) dims=[0] keep=false : f32[2] at [-]+dp bwd
%4 = reshard(%1) : f32[2] at [-] bwd
%5 = grad(%4) path="a" : f32[2] at [-] bwd
%6 = reshard(%3) : f32[2] at [-] bwd
%7 = grad(%6) path="b" : f32[2] at [-] bwd
metric "a" = %5
metric "b" = %7
)",
     "2 values, 0 of 16 bytes copied, in place\nsum exp sum\n"},
    {"one that is read after the sum has begun is not overwritten",
     R"(graph placed mesh dp=2
%0 = batch() name="x" dtype=f32 shape=[4,2] : f32[4,2] at [dp,-]
%1 = sum(%0) dims=[0] keep=false : f32[2] at [-]+dp bwd
%2 = exp(%0) : f32[4,2] at [dp,-] bwd
%3 = sum(%2) dims=[0] keep=false : f32[2] at [-]+dp bwd
%4 = reshard(%1) : f32[2] at [-] bwd
%5 = grad(%4) path="a" : f32[2] at [-] bwd
%6 = reshard(%3) : f32[2] at [-] bwd
%7 = grad(%6) path="b" : f32[2] at [-] bwd
%8 = exp(%1) : f32[2] at [-]+dp bwd
metric "a" = %5
metric "b" = %7
metric "c" = %8
)",
     "2 values, 0 of 16 bytes copied, apart\nsum exp sum exp\n"},
    {"one that is read before may be",
     R"(graph placed mesh dp=2
%0 = batch() name="x" dtype=f32 shape=[4,2] : f32[4,2] at [dp,-]
%1 = sum(%0) dims=[0] keep=false : f32[2] at [-]+dp bwd
%2 = exp(%1) : f32[2] at [-]+dp bwd
%3 = sum(%0) dims=[0] keep=false : f32[2] at [-]+dp bwd
%4 = reshard(%1) : f32[2] at [-] bwd
%5 = grad(%4) path="a" : f32[2] at [-] bwd
%6 = reshard(%3) : f32[2] at [-] bwd
%7 = grad(%6) path="b" : f32[2] at [-] bwd
metric "a" = %5
metric "b" = %7
metric "c" = %2
)",
     "2 values, 0 of 16 bytes copied, in place\nsum exp sum\n"},
    {"one value is in one place: elsewhere it is copied",
     R"(graph placed mesh dp=2
%0 = batch() name="x" dtype=f32 shape=[4,2] : f32[4,2] at [dp,-]
%1 = sum(%0) dims=[0] keep=false : f32[2] at [-]+dp bwd
%2 = reshard(%1) : f32[2] at [-] bwd
%3 = grad(%2) path="a" : f32[2] at [-] bwd
%4 = reshard(%1) : f32[2] at [-] bwd
%5 = grad(%4) path="b" : f32[2] at [-] bwd
metric "a" = %3
metric "b" = %5
)",
     "2 values, 8 of 16 bytes copied, in place\nsum bucket\n"},
    {"what leaves the step keeps its place, and so does what comes from outside",
     R"(graph placed mesh dp=2
%0 = batch() name="x" dtype=f32 shape=[4,2] : f32[4,2] at [dp,-]
%1 = batch() name="y" dtype=f32 shape=[2] : f32[2] at [-]+dp
%2 = sum(%0) dims=[0] keep=false : f32[2] at [-]+dp bwd
%3 = sum(%0) dims=[0] keep=false : f32[2] at [-]+dp bwd
%4 = reshard(%1) : f32[2] at [-] bwd
%5 = grad(%4) path="a" : f32[2] at [-] bwd
%6 = reshard(%2) : f32[2] at [-] bwd
%7 = grad(%6) path="b" : f32[2] at [-] bwd
%8 = reshard(%3) : f32[2] at [-] bwd
%9 = grad(%8) path="c" : f32[2] at [-] bwd
metric "a" = %5
metric "b" = %7
metric "c" = %9
metric "leaves" = %2
)",
     "3 values, 16 of 24 bytes copied, in place\nsum sum bucket\n"},
    {"another shape of a value takes it along, and what is made in place of it",
     R"(graph placed mesh dp=2
%0 = batch() name="x" dtype=f32 shape=[4,6] : f32[4,6] at [dp,-]
%1 = sum(%0) dims=[0] keep=false : f32[6] at [-]+dp bwd
%2 = reshape(%1) shape=[2,3] : f32[2,3] at [-,-]+dp bwd
%3 = sum(%0) dims=[0] keep=false : f32[6] at [-]+dp bwd
%4 = exp(%3) : f32[6] at [-]+dp bwd
%5 = reshard(%2) : f32[2,3] at [-,-] bwd
%6 = grad(%5) path="a" : f32[2,3] at [-,-] bwd
%7 = reshard(%4) : f32[6] at [-] bwd
%8 = grad(%7) path="b" : f32[6] at [-] bwd
metric "a" = %6
metric "b" = %8
)",
     "2 values, 0 of 48 bytes copied, in place\nsum sum exp\n"},
    {"a transposed one is written into the bucket by a call, as it would be without",
     R"(graph placed mesh dp=2
%0 = batch() name="x" dtype=f32 shape=[4,2,3] : f32[4,2,3] at [dp,-,-]
%1 = sum(%0) dims=[0] keep=false : f32[2,3] at [-,-]+dp bwd
%2 = transpose(%1) permutation=[1,0] : f32[3,2] at [-,-]+dp bwd
%3 = sum(%0) dims=[0] keep=false : f32[2,3] at [-,-]+dp bwd
%4 = reshard(%2) : f32[3,2] at [-,-] bwd
%5 = grad(%4) path="a" : f32[3,2] at [-,-] bwd
%6 = reshard(%3) : f32[2,3] at [-,-] bwd
%7 = grad(%6) path="b" : f32[2,3] at [-,-] bwd
metric "a" = %5
metric "b" = %7
)",
     "2 values, 0 of 48 bytes copied, in place\nsum transpose sum\n"},
    {"micro-batches add up in the bucket; the sum begins in the last of them",
     R"(graph placed mesh dp=2 mb=2@time
%0 = batch() name="x" dtype=f32 shape=[8,2] : f32[8,2] at [dp.mb,-]
%1 = sum(%0) dims=[0] keep=false : f32[2] at [-]+dp+mb bwd
%2 = exp(%0) : f32[8,2] at [dp.mb,-] bwd
%3 = sum(%2) dims=[0] keep=false : f32[2] at [-]+dp+mb bwd
%4 = reshard(%1) : f32[2] at [-] bwd
%5 = grad(%4) path="a" : f32[2] at [-] bwd
%6 = reshard(%3) : f32[2] at [-] bwd
%7 = grad(%6) path="b" : f32[2] at [-] bwd
metric "a" = %5
metric "b" = %7
)",
     "2 values, 0 of 16 bytes copied, in place\nsum identity add exp sum identity add\n"},
};

/// What becomes of the one bucket of a graph, and the kernels that run, in order.
std::string lowered(const char* graph) {
  const Graph placed = parse_graph(graph, find_op);
  const Program program = bucket(partition(placed), {1000});
  StateSection states(0);
  const std::unique_ptr<Device> device = make_cpu_device({1, -1});
  const ProgramPlan plan = lower("train", program, overlap(program), states, *device, {});
  std::string out, kernels;
  for (const BucketUse& bucket : plan.buckets)
    out += text(bucket.values, " values, ", bucket.copied_bytes, " of ", bucket.bytes,
                " bytes copied, ");
  for (const RegionPlan& region : plan.regions) {
    for (const Call& call : region.calls) {
      if (call.kernel) kernels += text(kernels.empty() ? "" : " ", call.op->name);
      if (call.transfer) out += call.ins == call.outs ? "in place\n" : "apart\n";
    }
  }
  return out + kernels + "\n";
}

TEST(Parts, Cases) {
  for (const PartsCase& c : kPartsCases) {
    SCOPED_TRACE(c.why);
    EXPECT_EQ(lowered(c.graph), c.out);
  }
}

}  // namespace
}  // namespace tessera
