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

/// The operand that an input of the body stands for.
std::size_t operand_of(const Node& input, std::size_t num_in) {
  std::size_t i = 0;
  while (i < num_in && std::get<std::string>(input.attrs[0]) != text(i)) ++i;
  return i;
}

void check_body(const OpCall& c, const Graph& body) {
  std::vector<bool> found(static_cast<std::size_t>(c.num_in()), false);
  for (NodeId id = 0; id < body.size(); ++id) {
    const Node& node = body.node(id);
    if (node.op != &kBatch) {
      check(node.op == &kConstant || may_be_fused(*node.op), "fused: ", node.op->name,
            " is not elementwise, or draws random numbers");
      continue;
    }
    const int i = static_cast<int>(operand_of(node, found.size()));
    check(i < c.num_in(), "fused: the body reads '", std::get<std::string>(node.attrs[0]),
          "', there are ", c.num_in(), " operands");
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
  TensorTypes out;
  for (const Output& output : body.outputs()) {
    check(output.kind == Output::Kind::Metric, "fused: output '", output.name,
          "' of the body is no Metric");
    out.push_back(body.type(output.value));
    check(out.back().shape == out[0].shape, "fused: results ", out[0], " and ", out.back(),
          " differ in shape");
  }
  check(!out.empty(), "fused: the body has no outputs");
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

/// The body over one rank's shards, where the graph was fused before it was cut. A broadcast inside
/// follows the results.
Graph body_of_shard(const Graph& body, const RefCall& c) {
  const Shape whole = body.type(body.outputs()[0].value).shape;
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
      if (node.op == &kBatch) shape = c.ins[operand_of(node, c.ins.size())].type.shape;
      for (int i = 0; node.op == &kBroadcast && i < shape.ndim(); ++i) {
        if (shape.back(i) == whole.back(i)) {
          shape[shape.ndim() - 1 - i] = c.outs[0].type.shape.back(i);
        }
      }
      attrs = attrs.with(attrs.size() - 1, std::vector<std::int64_t>(shape.begin(), shape.end()));
    }
    values.push_back(builder.add_all(*node.op, ins, std::move(attrs)));
  }
  for (const Output& output : body.outputs()) {
    const std::vector<Value>& results = values[static_cast<std::size_t>(output.value.node)];
    builder.output(output.kind, output.name, results[static_cast<std::size_t>(output.value.index)]);
  }
  return builder.finish();
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
  const Graph& body = c.call.graph("body");
  const std::vector<HostTensor> results = body.type(body.outputs()[0].value).shape == c.out_shape(0)
                                              ? interpret(body, inputs, how)
                                              : interpret(body_of_shard(body, c), inputs, how);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const HostTensor out = results[i].cast(c.outs[i].type.dtype);
    std::memcpy(c.outs[i].data, out.bytes().data(), out.bytes().size());
  }
}

}  // namespace

constinit const OpDef kFused = {
    .name = "fused",
    .doc = "Several elementwise ops as one; operand i is the input named i of the graph `body`.",
    .attrs = {{"body", AttrKind::Graph}},
    .infer = infer,
    .factors = [](const OpCall& c) -> Factors { return elementwise_factors(c); },
    .flops = flops,
    .reference = {reference<false>, reference<true>},
    .in_place = {{{0, 0}, {0, 1}, {0, 2}, {0, 3}}},  // where the operand has the type of result 0
};

bool may_be_fused(const OpDef& op) {
  return op.traits.elementwise && &op != &kFused && !is_random(op);
}

std::vector<Value> fused(const std::vector<Value>& ins, std::shared_ptr<const Graph> body,
                         Where where) {
  check(!ins.empty(), "fused: needs an operand");
  return ins[0].builder().add_all(kFused, ins, {std::move(body)}, where);
}

}  // namespace tessera
