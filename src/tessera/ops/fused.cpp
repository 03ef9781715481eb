#include "tessera/ops/fused.h"

#include <algorithm>
#include <cstring>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/interpret.h"
#include "tessera/ops/random.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/reference.h"

namespace tessera {

namespace {

void check_body(const OpCall& c, const Graph& body) {
  std::vector<bool> found(static_cast<std::size_t>(c.num_in()), false);
  for (NodeId id = 0; id < body.size(); ++id) {
    const Node& node = body.node(id);
    if (node.op != &kBatch) {
      check(node.op == &kConstant || may_be_fused(body.call(id)), "fused: ", node.op->name,
            " neither works element by element nor row by row");
      continue;
    }
    const int i = operand_of_body(node, c.num_in());
    check(node.type() == c.in(i), "fused: operand ", i, " is ", c.in(i), ", the body takes ",
          node.type());
    found[static_cast<std::size_t>(i)] = true;
  }
  check(std::find(found.begin(), found.end(), false) == found.end(),
        "fused: an operand is not read by the body");
}

TensorTypes infer(const OpCall& c) {
  const Graph& body = c.graph("body");
  check_body(c, body);
  check(!body.outputs().empty(), "fused: the body has no outputs");
  const BodySpace space = space_of_body(body);
  TensorTypes out;
  for (const Output& output : body.outputs()) {
    check(output.kind == Output::Kind::Metric, "fused: output '", output.name,
          "' of the body is no Metric");
    out.push_back(body.type(output.value));
    const Shape& shape = out.back().shape;
    check(shape == space.shape || (space.row_dims > 0 && space.each(shape) && !shape.empty()),
          "fused: the body runs over ", space.shape, ", a result is ", out.back());
  }
  return out;
}

/// A row is not split. Nor are the dims before it where rows are summed: the sum would read what
/// the body makes of padding.
Factors fused_factors(const OpCall& c) {
  const BodySpace space = space_of_body(c.graph("body"));
  if (space.row_dims == 0) return elementwise_factors(c);
  Factors out;
  const int ndim = space.shape.ndim();
  bool sums = false;
  for (int i = 0; i < c.num_out(); ++i) sums = sums || c.out(i).ndim() < ndim;
  for (int d = 0; d < ndim; ++d) {
    const bool whole = sums || d >= ndim - space.row_dims;
    out.list.push_back(
        {text("d", d), space.shape[d], whole ? FactorKind::Whole : FactorKind::Pass});
  }
  const auto aligned = [&](const Shape& shape) {
    Factors::Dims dims;
    for (int d = 0; d < shape.ndim(); ++d) {
      const int f = ndim - shape.ndim() + d;
      dims.push_back(shape[d] == space.shape[f] ? std::vector<int>{f} : std::vector<int>{});
    }
    return dims;
  };
  for (int i = 0; i < c.num_in(); ++i) out.ins.push_back(aligned(c.in(i).shape));
  for (int i = 0; i < c.num_out(); ++i) out.outs.push_back(aligned(c.out(i).shape));
  return out;
}

double flops(const OpCall& c) {
  const Graph& body = c.graph("body");
  double out = 0;
  for (NodeId id = 0; id < body.size(); ++id) {
    if (body.node(id).op->flops != nullptr) out += body.node(id).op->flops(body.call(id));
  }
  return out;
}

const RefOperand& operand_of(const Node& input, const RefCall& c) {
  return c.ins[static_cast<std::size_t>(operand_of_body(input, c.num_in()))];
}

/// The part of the body's space that this rank has: where it begins, and its shape. Operands and
/// results that have a dim say so of it.
RefOperand part_of(const Graph& body, const RefCall& c) {
  const Shape whole = space_of_body(body).shape;
  RefOperand out{{DType::F32, whole, {}}, nullptr, Shape::of(whole.ndim(), 0), whole, whole};
  const auto learn = [&](const RefOperand& from, const Shape& in_body) {
    for (int i = 0; i < in_body.ndim(); ++i) {
      if (in_body.back(i) != whole.back(i)) continue;
      const int to = whole.ndim() - 1 - i;
      out.type.shape[to] = from.type.shape.back(i);
      out.offset[to] = from.offset.back(i);
      out.valid[to] = from.valid.back(i);
      out.global[to] = from.global.back(i);
    }
  };
  for (const Node& node : body.nodes()) {
    if (node.op == &kBatch) learn(operand_of(node, c), node.type().shape);
  }
  for (std::size_t i = 0; i < c.outs.size(); ++i)
    learn(c.outs[i], body.type(body.outputs()[i].value).shape);
  return out;
}

/// The body over one rank's shards, where the graph was fused before it was cut. A broadcast inside
/// follows the results.
Graph body_of_shard(const Graph& body, const RefCall& c, const Shape& local) {
  const Shape whole = space_of_body(body).shape;
  Builder builder;
  std::vector<std::vector<Value>> values;
  for (const Node& node : body.nodes()) {
    std::vector<Value> ins;
    for (const ValueId input : node.inputs) {
      ins.push_back(
          values[static_cast<std::size_t>(input.node)].at(static_cast<std::size_t>(input.index)));
    }
    Attrs attrs = node.attrs;
    if (node.op == &kBatch || node.op == &kBroadcast) {
      Shape shape = node.type().shape;
      if (node.op == &kBatch) shape = operand_of(node, c).type.shape;
      for (int i = 0; node.op == &kBroadcast && i < shape.ndim(); ++i) {
        if (shape.back(i) == whole.back(i)) {
          shape[shape.ndim() - 1 - i] = local.back(i);
        }
      }
      attrs = attrs.with(static_cast<std::size_t>(node.op->attrs.shape_of_result()),
                         std::vector<std::int64_t>(shape.begin(), shape.end()));
    }
    values.push_back(builder.add_all(*node.op, ins, std::move(attrs)));
  }
  for (const Output& output : body.outputs()) {
    const std::vector<Value>& results = values[static_cast<std::size_t>(output.value.node)];
    builder.output(output.kind, output.name, results[static_cast<std::size_t>(output.value.index)]);
  }
  return builder.finish();
}

constexpr decltype(OpDef::in_place) result_0_in_any_operand() {
  decltype(OpDef::in_place) out{};
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = {0, static_cast<std::int8_t>(i)};
  return out;
}

/// Where the op that makes the result may put it there, and no other op of the body reads that
/// operand.
bool in_place_in_body(const OpCall& c, int result, int operand) {
  const Graph& body = c.graph("body");
  const ValueId made = body.outputs()[static_cast<std::size_t>(result)].value;
  const auto is_operand = [&](ValueId v) {
    const Node& node = body.node(v.node);
    return node.op == &kBatch && operand_of_body(node, c.num_in()) == operand;
  };
  for (NodeId id = 0; id < body.size(); ++id) {
    if (id != made.node && std::ranges::any_of(body.node(id).inputs, is_operand)) return false;
  }
  const Node& node = body.node(made.node);
  return std::ranges::any_of(node.op->in_place, [&](const InPlace& pair) {
    return pair.result == made.index && pair.operand < static_cast<int>(node.inputs.size()) &&
           is_operand(node.inputs[static_cast<std::size_t>(pair.operand)]) &&
           std::ranges::count_if(node.inputs, is_operand) == 1;
  });
}

template <bool kF64>
void reference(RefCall& c) {
  Bindings inputs;
  for (std::size_t i = 0; i < c.ins.size(); ++i) {
    HostTensor in(c.ins[i].type);
    std::memcpy(in.bytes().data(), c.ins[i].data, in.bytes().size());
    inputs.batch.emplace(text(i), std::move(in));
  }
  Interpretation how;
  how.f64 = kF64;
  how.seed = c.seed;
  const Graph& body = c.call.graph("body");
  const RefOperand part = part_of(body, c);
  how.within = &part;
  const Shape& local = part.type.shape;
  const std::vector<HostTensor> results =
      space_of_body(body).shape == local ? interpret(body, inputs, how)
                                         : interpret(body_of_shard(body, c, local), inputs, how);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const HostTensor out = results[i].cast(c.outs[i].type.dtype);
    std::memcpy(c.outs[i].data, out.bytes().data(), out.bytes().size());
  }
}

}  // namespace

constinit const OpDef kFused = {
    .name = "fused",
    .doc = "Several ops as one pass; operand i is the input named i of the graph `body`.",
    .attrs = {{"body", AttrKind::Graph}},
    .infer = infer,
    .factors = fused_factors,
    .flops = flops,
    .reference = {reference<false>, reference<true>},
    .in_place = result_0_in_any_operand(),  // that has its type
    .also_in_place = in_place_in_body,
};

int row_dims_of(const OpCall& call) {
  return call.op().row_dims == nullptr ? 0 : call.op().row_dims(call);
}

bool may_be_fused(const OpCall& call) {
  return call.op().traits.elementwise || row_dims_of(call) > 0;
}

std::optional<BodySpace::Each> BodySpace::each(const Shape& value) const {
  if (value == shape) return Each::Element;
  Shape row, statistic = shape;
  for (int d = shape.ndim() - row_dims; d < shape.ndim(); ++d) {
    row.push_back(shape[d]);
    statistic[d] = 1;
  }
  if (value == statistic) return Each::Row;
  if (value == row || value.empty()) return Each::Whole;
  return std::nullopt;
}

int operand_of_body(const Node& input, int num_in) {
  const std::string& name = std::get<std::string>(input.attrs[0]);
  for (int i = 0; i < num_in; ++i) {
    if (name == text(i)) return i;
  }
  fail(Fault::Internal, "fused: the body reads '", name, "', there are ", num_in, " operands");
}

BodySpace space_of_body(const Graph& body) {
  for (NodeId id = 0; id < body.size(); ++id) {
    if (const int rows = row_dims_of(body.call(id)); rows > 0)
      return {body.type(body.node(id).inputs[0]).shape, rows};
  }
  return {body.type(body.outputs()[0].value).shape, 0};
}

std::vector<Value> fused(const std::vector<Value>& ins, std::shared_ptr<const Graph> body,
                         Where where) {
  check(!ins.empty(), "fused: needs an operand");
  return ins[0].builder().add_all(kFused, ins, {std::move(body)}, where);
}

}  // namespace tessera
