#include "tessera/ir/cut.h"

#include <algorithm>

#include "tessera/base/index.h"

namespace tessera {

namespace {

constexpr int kMany = -2;  // the factor is one of several of a dim, or of several dims

/// The dim of a value that is this factor, alone; -1: none.
int dim_of_factor(const Factors::Dims& dims, int factor) {
  int out = -1;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const std::vector<int>& all = dims[d];
    if (std::ranges::find(all, factor) == all.end()) continue;
    if (out != -1 || all.size() != 1) return kMany;
    out = static_cast<int>(d);
  }
  return out;
}

}  // namespace

bool may_be_cut(const OpDef& op) {
  if (op.factors == nullptr || op.traits.inserted || op.traits.by_place) return false;
  return std::ranges::none_of(op.attrs, [](const AttrDef& attr) {
    return attr.size_of_dim != AttrDef::kNoDim || attr.kind == AttrKind::Graph;
  });
}

std::optional<CutDims> cut_along(const OpCall& call, const Factors& rule, int factor) {
  const Factor& cut = rule.list[at(factor)];
  if (cut.kind != FactorKind::Pass || cut.size < 2) return std::nullopt;
  CutDims out;
  for (int i = 0; i < call.num_in(); ++i) {
    out.ins.push_back(dim_of_factor(rule.ins[at(i)], factor));
    // Ids name rows of a table: only what is cut with them keeps its place.
    if (out.ins.back() == -1 && call.in(i).dtype == DType::I32) return std::nullopt;
    if (out.ins.back() == kMany) return std::nullopt;
  }
  for (int i = 0; i < call.num_out(); ++i) {
    out.outs.push_back(dim_of_factor(rule.outs[at(i)], factor));
    const bool sum = out.outs.back() == -1;
    if (out.outs.back() == kMany || (sum && computed_in(call.out(i).dtype) != DType::F32))
      return std::nullopt;
  }
  return out;
}

int factor_of_dim(const Factors::Dims& dims, int dim) {
  const std::vector<int>& all = dims[at(dim)];
  return all.size() == 1 ? all[0] : -1;
}

}  // namespace tessera
