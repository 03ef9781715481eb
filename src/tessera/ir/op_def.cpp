#include "tessera/ir/op_def.h"

#include "tessera/ir/builder.h"

namespace tessera {

const TensorType& OpCall::in(int i) const {
  require(i < num_in(), op_->name, ": needs more than ", num_in(), " operands");
  return *ins_[static_cast<std::size_t>(i)];
}

const TensorType& OpCall::out(int i) const { return *outs_[static_cast<std::size_t>(i)]; }

const AttrValue& OpCall::attr(std::string_view name) const {
  const int i = op_->attrs.find(name);
  check(i >= 0 && static_cast<std::size_t>(i) < attrs_->size(), op_->name, " has no attribute '",
        name, "'");
  return (*attrs_)[static_cast<std::size_t>(i)];
}

bool OpCall::lacks(std::string_view name) const {
  const int i = op_->attrs.find(name);
  check(i >= 0, op_->name, " has no attribute '", name, "'");
  return static_cast<std::size_t>(i) >= attrs_->size();
}

std::vector<int> OpCall::ndims() const {
  std::vector<int> out;
  for (const TensorType* type : ins_) out.push_back(type->ndim());
  for (const TensorType* type : outs_) out.push_back(type->ndim());
  return out;
}

Value GradCall::in(int i) const { return ins_[static_cast<std::size_t>(i)]; }
Value GradCall::out(int i) const { return outs_[static_cast<std::size_t>(i)]; }
bool GradCall::has_dout(int i) const { return douts_[static_cast<std::size_t>(i)].valid(); }
Value GradCall::dout(int i) const {
  check(has_dout(i), call.op().name, ": the gradient asks for the cotangent of result ", i,
        ", which has none");
  return douts_[static_cast<std::size_t>(i)];
}
Value& GradCall::din(int i) { return dins_[static_cast<std::size_t>(i)]; }

Value ExpandCall::in(int i) const { return ins_[static_cast<std::size_t>(i)]; }
Value& ExpandCall::out(int i) { return outs_[static_cast<std::size_t>(i)]; }

double bytes_moved(const OpCall& call) {
  if (call.op().bytes != nullptr) return call.op().bytes(call);
  double bytes = 0;
  for (int i = 0; i < call.num_in(); ++i) bytes += static_cast<double>(call.in(i).bytes());
  for (int i = 0; i < call.num_out(); ++i) bytes += static_cast<double>(call.out(i).bytes());
  return bytes;
}

Factors factors_of(const OpCall& call) {
  check(call.op().factors != nullptr, call.op().name, " has no factor rule");
  Factors out = call.op().factors(call);
  const auto bind = [&](const Factors::Dims& dims, const TensorType& type) {
    for (int d = 0; d < type.ndim(); ++d) {
      const std::vector<int>& fs = dims[static_cast<std::size_t>(d)];
      if (fs.size() != 1)
        continue;  // compound dims are bound by the rule itself or through other operands
      std::int64_t& size = out.list[static_cast<std::size_t>(fs[0])].size;
      check(size == 0 || size == type.shape[d], call.op().name, ": rule '", out, "' gives factor ",
            out.list[static_cast<std::size_t>(fs[0])].name, " sizes ", size, " and ",
            type.shape[d]);
      size = type.shape[d];
    }
  };
  for (int i = 0; i < call.num_in(); ++i) bind(out.ins[static_cast<std::size_t>(i)], call.in(i));
  for (int i = 0; i < call.num_out(); ++i) bind(out.outs[static_cast<std::size_t>(i)], call.out(i));
  return out;
}

}  // namespace tessera
