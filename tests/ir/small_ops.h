#pragma once
/// A few ops for tests of graphs: `ir` itself has only inputs.

#include <array>

#include "tessera/ir/builder.h"

namespace tessera {

inline constexpr auto kSameFactors = [](const OpCall& c) -> Factors {
  return Factors::parse("..., ... -> ...", c.ndims());
};

/// a + b of one type.
inline constinit const OpDef kTestAdd = {
    .name = "test_add",
    .doc = "a + b",
    .infer = [](const OpCall& c) -> TensorTypes {
      require(c.in(0) == c.in(1), "test_add: operands are ", c.in(0), " and ", c.in(1));
      return {c.in(0)};
    },
    .factors = kSameFactors,
};

/// One attribute of every plain kind; the result has the operand's type.
inline constinit const OpDef kTestMany = {
    .name = "test_many",
    .doc = "an attribute of each kind",
    .attrs = {{"count", AttrKind::Int},
              {"scale", AttrKind::Float},
              {"flag", AttrKind::Bool},
              {"key", AttrKind::Text},
              {"dims", AttrKind::Ints},
              {"rates", AttrKind::Floats},
              {"dtype", AttrKind::DType}},
    .infer = [](const OpCall& c) -> TensorTypes { return {c.in(0)}; },
};

/// Two results of the operand's type, and attributes that a node may lack.
inline constinit const OpDef kTestPair = {
    .name = "test_pair",
    .doc = "two results",
    .attrs = {{.name = "dtype", .kind = AttrKind::DType, .optional = true},
              {.name = "sizes", .kind = AttrKind::Ints, .optional = true}},
    .infer = [](const OpCall& c) -> TensorTypes {
      return {c.in(0), c.in(0)};
    },
};

/// A graph as an attribute.
inline constinit const OpDef kTestBody = {
    .name = "test_body",
    .doc = "a graph inside",
    .attrs = {{"body", AttrKind::Graph}, {"count", AttrKind::Int}},
    .infer = [](const OpCall& c) -> TensorTypes { return {c.in(0)}; },
};

/// No results.
inline constinit const OpDef kTestSink = {
    .name = "test_sink",
    .doc = "no result",
    .infer = [](const OpCall&) -> TensorTypes { return {}; },
};

inline const OpDef* find_small_op(std::string_view name) {
  for (const OpDef* op : {&kTestAdd, &kTestMany, &kTestPair, &kTestBody, &kTestSink, &kBatch,
                          &kState, &kSlot, &kConstant}) {
    if (op->name == name) return op;
  }
  return nullptr;
}

/// A model of `layers` blocks of seven nodes with a parameter each, a backward pass and an update,
/// in the order in which nn and grad would build them.
inline Graph layered_graph(int layers, std::int64_t width = 4, bool stages = false) {
  Builder b;
  const TensorType type{DType::F32, {2, width}, {}};
  Value x = b.batch("x", type, Where{});
  std::vector<std::vector<Value>> kept;
  std::vector<Value> weights;
  const auto mark = [&](const std::string& block, Phase phase, int layer, int line) {
    b.set_mark({block, phase, stages ? layer * 2 / layers : -1, {"nn/small.cpp", line}});
  };
  for (int i = 0; i < layers; ++i) {
    mark(text("layers.", i), Phase::Forward, i, 10);
    const Value w = b.state("w", type, Role::Parameter, {Init::Kind::Normal, 0.02});
    mark(text("layers.", i, ".mlp"), Phase::Forward, i, 11);
    const Value up = b.add(kTestAdd, {x, w});
    const Value drop = b.add(kTestMany, {up},
                             {std::int64_t{i >= 0}, 0.1, true, text("layers.", i, ".mlp.drop"),
                              std::vector<std::int64_t>{0, 1}, std::vector<double>{0.5, 1},
                              DType::F32});
    const std::vector<Value> pair = b.add_all(kTestPair, {drop});
    const Value y = b.add(kTestAdd, {pair[0], pair[1]});
    b.set_name(y, text("layers.", i, ".residual"));
    kept.push_back({x, up, drop, y});
    weights.push_back(w);
    x = b.add(kTestAdd, {x, y});
  }
  b.set_mark({});
  Value dx = b.add(kTestAdd, {x, x});
  b.output(Output::Kind::Metric, "loss", dx);
  std::vector<Value> gradients(static_cast<std::size_t>(layers));
  for (int i = layers - 1; i >= 0; --i) {
    const std::vector<Value>& k = kept[static_cast<std::size_t>(i)];
    mark(text("layers.", i, ".mlp"), Phase::Backward, i, 11);
    const Value dup = b.add(kTestAdd, {dx, k[2]});
    b.set_cotangent(dup, {k[1].id(), true});
    b.set_like(dup, k[2].id().node);
    gradients[static_cast<std::size_t>(i)] = b.add(kTestAdd, {dup, k[1]});
    dx = b.add(kTestAdd, {dup, dx});
    b.set_cotangent(dx, {k[0].id(), false});
  }
  for (int i = 0; i < layers; ++i) {
    mark(text("layers.", i), Phase::Update, i, 20);
    const Value w = weights[static_cast<std::size_t>(i)];
    const Value m = b.state("w.m", type, Role::Moment, {});
    const Value m_next = b.add(kTestAdd, {m, gradients[static_cast<std::size_t>(i)]});
    const Value w_next = b.add(kTestAdd, {w, m_next});
    b.next(w, w_next);
    b.next(m, m_next);
  }
  b.set_mark({});
  return b.finish();
}

}  // namespace tessera
