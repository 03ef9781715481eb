#include "tessera/device/cpu/blocks.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "tessera/device/cpu/kernels.h"
#include "tessera/ir/graph.h"

namespace tessera::cpu {

namespace {

constexpr int kMany = -2;  // the factor is one of several of a dim, or of several dims

/// The dim of a value that is this factor, alone; -1: none.
int dim_of(const Factors::Dims& dims, int factor) {
  int out = -1;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const std::vector<int>& all = dims[d];
    if (std::ranges::find(all, factor) == all.end()) continue;
    if (out != -1 || all.size() != 1) return kMany;
    out = static_cast<int>(d);
  }
  return out;
}

/// False of ops whose elements depend on where they lie, whatever is cut, and of those whose
/// attributes hold sizes: a block would need its own.
bool may_be_cut(const OpDef& op) {
  if (op.factors == nullptr || op.traits.inserted || op.traits.by_place) return false;
  return std::ranges::none_of(op.attrs, [](const AttrDef& attr) {
    return attr.size_of_dim != AttrDef::kNoDim || attr.kind == AttrKind::Graph;
  });
}

struct Need {
  double always = 0, cut = 0;  // bytes of f32: of each block, and of all blocks together
};

class Cutting {
 public:
  explicit Cutting(const KernelRequest& request)
      : request_(request), call_(request.call), factors_(factors_of(request.call)) {}

  int factors() const { return static_cast<int>(factors_.list.size()); }
  std::int64_t size(int factor) const { return at(factor).size; }

  /// Nothing where that factor cannot be cut.
  std::optional<Blocks> along(int factor) const {
    if (at(factor).kind != FactorKind::Pass || at(factor).size < 2) return std::nullopt;
    Blocks out;
    out.size = out.length = at(factor).size;
    for (int i = 0; i < call_.num_in(); ++i) {
      const TensorType& type = call_.in(i);
      out.ins.push_back(dim_of(factors_.ins[static_cast<std::size_t>(i)], factor));
      // Ids name rows of a table: only what is cut with them keeps its place.
      if (out.ins.back() == -1 && type.dtype == DType::I32) return std::nullopt;
      if (out.ins.back() == kMany) return std::nullopt;
    }
    for (int i = 0; i < call_.num_out(); ++i) {
      const TensorType& type = call_.out(i);
      out.outs.push_back(dim_of(factors_.outs[static_cast<std::size_t>(i)], factor));
      const bool sum = out.outs.back() == -1;
      if (out.outs.back() == kMany || (sum && computed_in(type.dtype) != DType::F32))
        return std::nullopt;
    }
    return out;
  }

  Need need(const Blocks& blocks) const {
    Need out;
    for (int i = 0; i < call_.num_in(); ++i) {
      const int dim = blocks.ins[static_cast<std::size_t>(i)];
      if (is_copied(call_.in(i), strides_of(request_, i), dim)) add(call_.in(i), dim, out);
    }
    for (int i = 0; i < call_.num_out(); ++i) {
      const TensorType& type = call_.out(i);
      const int dim = blocks.outs[static_cast<std::size_t>(i)];
      if (is_copied(type, type.shape.strides(), dim)) add(type, dim, out);
      if (dim == -1) add(type, dim, out);  // a block's, beside the sum
    }
    return out;
  }

 private:
  const Factor& at(int factor) const { return factors_.list[static_cast<std::size_t>(factor)]; }

  static bool is_copied(const TensorType& type, const Shape& strides, int dim) {
    return is_16_bit(type.dtype) || !is_window(type, strides, dim);
  }

  static void add(const TensorType& type, int dim, Need& need) {
    (dim < 0 ? need.always : need.cut) +=
        static_cast<double>(type.numel()) * static_cast<double>(size_of(computed_in(type.dtype)));
  }

  const KernelRequest& request_;
  const OpCall& call_;
  const Factors factors_;
};

Blocks one_block(const OpCall& call) {
  Blocks out;
  out.ins.assign(static_cast<std::size_t>(call.num_in()), -1);
  out.outs.assign(static_cast<std::size_t>(call.num_out()), -1);
  return out;
}

}  // namespace

bool is_window(const TensorType& type, const Shape& strides, int dim) {
  if (dim < 0) return true;
  for (int d = 0; d < dim; ++d) {
    if (type.shape[d] != 1) return false;
  }
  return strides == type.shape.strides();
}

Blocks blocks_of(const KernelRequest& request, std::int64_t bytes) {
  const OpCall& call = request.call;
  Blocks best = one_block(call);
  if (!may_be_cut(call.op())) return best;
  const Cutting cutting(request);
  const auto most = static_cast<double>(bytes);
  double least = 0;
  for (int i = 0; i < call.num_in(); ++i)
    least += is_16_bit(call.in(i).dtype) ? 2.0 * static_cast<double>(call.in(i).bytes()) : 0;
  for (int i = 0; i < call.num_out(); ++i)
    least += is_16_bit(call.out(i).dtype) ? 2.0 * static_cast<double>(call.out(i).bytes()) : 0;
  if (least <= most) return best;
  for (int factor = 0; factor < cutting.factors(); ++factor) {
    std::optional<Blocks> blocks = cutting.along(factor);
    if (!blocks) continue;
    const Need need = cutting.need(*blocks);
    const double parts = std::ceil(need.cut / most);
    blocks->length =
        std::max<std::int64_t>(1, blocks->size / static_cast<std::int64_t>(std::max(1.0, parts)));
    const double total = need.always + need.cut * static_cast<double>(blocks->length) /
                                           static_cast<double>(blocks->size);
    if (total >= least) continue;
    least = total;
    best = *std::move(blocks);
  }
  return best;
}

}  // namespace tessera::cpu
