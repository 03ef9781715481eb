#include "tessera/plan/price.h"

#include <algorithm>

#include "tessera/ops/operand_floats.h"

namespace tessera {

namespace {

KernelWork work_of(const Call& call) {
  KernelWork out{call.flops, call.bytes};
  if (call.op == nullptr) return out;
  OpCall::Types ins, outs;
  for (const TensorType& type : call.types->ins) ins.push_back(&type);
  for (const TensorType& type : call.types->outs) outs.push_back(&type);
  const OpCall priced(*call.op, ins, call.types->attrs, outs);
  out.dtype = operand_floats(priced);
  if (call.op->product == nullptr) return out;
  const ProductSize size = call.op->product(priced);
  out.product = {size.m, size.n, size.k, size.attention};
  return out;
}

/// In how many of so many micro-batches a call runs.
std::int64_t runs_of(When when, std::int64_t microbatches) {
  return when == When::Always ? microbatches : when == When::Later ? microbatches - 1 : 1;
}

int steps_of(const Transfer& transfer, int ranks) {
  if (transfer.from >= 0) return 1;
  const int steps = steps_among(ranks);
  return transfer.collective.kind == CollectiveKind::AllReduce ? 2 * steps : steps;
}

/// What one of so many ranks sends. Among more than the plan was compiled for, dims may be too short
/// to be cut again: as if others were cut instead, as a plan of all these ranks would.
std::int64_t bytes_among(const Transfer& transfer, std::int64_t ranks) {
  const std::int64_t bytes = bytes_sent(transfer.collective, static_cast<int>(ranks));
  const auto compiled = static_cast<std::int64_t>(transfer.group.size());
  if (ranks <= compiled || compiled < 2) return bytes;
  const std::int64_t known = bytes_sent(transfer.collective, static_cast<int>(compiled));
  return std::min(bytes, known * compiled / (compiled - 1) * (ranks - 1) / ranks);
}

}  // namespace

double price(const Call& call, const Mesh& mesh, const Machine& machine) {
  if (call.copied_bytes > 0) return machine.copy_seconds(static_cast<double>(call.copied_bytes));
  if (!call.transfer) return call.kernel ? machine.kernel_seconds(work_of(call)) : 0;
  const Transfer& transfer = *call.transfer;
  if (transfer.is_message()) return 0;
  // From the mesh given, so that a plan can be priced for one with longer axes.
  const std::vector<AxisSpan> spans = spans_of(mesh, transfer.axes);
  std::int64_t group = 1;
  for (const AxisSpan& span : spans) group *= span.size;
  const auto ranks = static_cast<int>(group);
  const double bytes = static_cast<double>(bytes_among(transfer, ranks)) *
                       mean_share(transfer.collective.rows, ranks);
  return machine.move_seconds(spans, bytes, steps_of(transfer, ranks));
}

double step_seconds(const ProgramPlan& program, const Mesh& mesh, const Machine& machine) {
  double out = 0;
  for (const RegionPlan& region : program.regions) {
    for (const Call& call : region.calls) {
      const std::int64_t runs = in_loop(region.kind) ? runs_of(call.when, program.microbatches) : 1;
      out += static_cast<double>(runs) * price(call, mesh, machine);
    }
  }
  return out;
}

double message_seconds(const EdgeBytes& edge, const Pipeline& pipeline, std::int64_t ranks,
                       const Machine& machine) {
  return machine.message_seconds(pipeline.stage_of(edge.edge.giver) * ranks,
                                 pipeline.stage_of(edge.edge.taker) * ranks, ranks,
                                 static_cast<double>(edge.bytes));
}

}  // namespace tessera
