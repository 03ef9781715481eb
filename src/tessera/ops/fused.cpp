#include "tessera/ops/fused.h"

#include <algorithm>
#include <cstring>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/interpret.h"
#include "tessera/ops/reference.h"

namespace tessera {

namespace {

void check_body(const OpCall& c, const Graph& body) {
  std::vector<bool> found(static_cast<std::size_t>(c.num_in()), false);
  for (NodeId id = 0; id < body.size(); ++id) {
    const Node& node = body.node(id);
    if (node.op != &kBatch) {
      check(node.op == &kConstant || node.op->traits.elementwise, "fused: ", node.op->name,
            " is not elementwise");
      continue;
    }
    const std::string& name = std::get<std::string>(node.attrs[0]);
    int i = 0;
    while (i < c.num_in() && name != text(i)) ++i;
    check(i < c.num_in(), "fused: the body reads '", name, "', there are ", c.num_in(),
          " operands");
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
  const std::vector<HostTensor> results = interpret(c.call.graph("body"), inputs, how);
  for (std::size_t i = 0; i < results.size(); ++i) {
    std::memcpy(c.outs[i].data, results[i].bytes().data(), results[i].bytes().size());
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

std::vector<Value> fused(const std::vector<Value>& ins, std::shared_ptr<const Graph> body,
                         Where where) {
  check(!ins.empty(), "fused: needs an operand");
  return ins[0].builder().add_all(kFused, ins, {std::move(body)}, where);
}

}  // namespace tessera
