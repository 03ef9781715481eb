#include "tessera/plan/kernels.h"

#include <algorithm>
#include <bit>

#include "tessera/ir/hasher.h"

namespace tessera {

namespace {

TensorTypes types_of(const OpCall& call, int count, const TensorType& (OpCall::*type)(int) const) {
  TensorTypes out;
  for (int i = 0; i < count; ++i) out.push_back((call.*type)(i));
  return out;
}

void add(Hasher& hash, const Shape& shape) {
  for (const std::int64_t size : shape) hash.add(static_cast<std::uint64_t>(size));
}

/// A hash over most members of a request; equal requests have equal hashes.
std::uint64_t hash_of(const KernelRequest& request) {
  Hasher hash;
  hash.add(std::bit_cast<std::uintptr_t>(&request.call.op()));
  hash.add(request.key);
  for (const AttrValue& attr : request.call.attrs()) hash.add(attr);
  for (int i = 0; i < request.call.num_in(); ++i) add(hash, request.call.in(i).shape);
  for (const Shape& strides : request.in_strides) add(hash, strides);
  return hash.value();
}

}  // namespace

bool KernelTable::alike(const Made& made, const KernelRequest& request) {
  const OpCall& call = request.call;
  const CallTypes& types = *made.call.types;
  return made.call.op == &call.op() && made.key == request.key && made.seed == request.seed &&
         made.coordinate == request.coordinate && types.attrs == call.attrs() &&
         types.ins == types_of(call, call.num_in(), &OpCall::in) &&
         types.outs == types_of(call, call.num_out(), &OpCall::out) &&
         made.in_strides == request.in_strides && made.ins == request.ins &&
         made.outs == request.outs;
}

Call KernelTable::call(const KernelRequest& request) {
  std::vector<Made>& candidates = made_[hash_of(request)];
  const auto found = std::find_if(candidates.begin(), candidates.end(),
                                  [&](const Made& made) { return alike(made, request); });
  if (found != candidates.end()) return found->call;
  const OpCall& asked = request.call;
  Call call;
  call.kernel = device_.make_kernel(request);
  call.op = &asked.op();
  call.types = CallTypes{asked.attrs(), types_of(asked, asked.num_in(), &OpCall::in),
                         types_of(asked, asked.num_out(), &OpCall::out)};
  call.flops = call.op->flops == nullptr ? 0 : call.op->flops(asked);
  call.bytes = bytes_moved(asked);
  candidates.push_back({request.in_strides, request.ins, request.outs, request.key, request.seed,
                        request.coordinate, call});
  return call;
}

}  // namespace tessera
