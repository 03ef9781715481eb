#include "tessera/hlo/emitter.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/index.h"
#include "tessera/hlo/op_call.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/strategy.h"
#include "tessera/ops/collective.h"

namespace tessera::hlo {

namespace {

/// The axes that split a dim; none in a value without a placement.
const std::vector<std::string>& axes_of_dim(const Result& result, int dim) {
  static const std::vector<std::string> kNone;
  return result.placement ? result.placement->sharding.dims[at(dim)] : kNone;
}

std::int64_t logical_size(const Result& result, int dim) {
  return result.placement ? result.logical[dim] : result.type.shape[dim];
}

Extent extent_of(const Result& result, int dim, const Mesh& mesh, const Coordinates& where) {
  return extent(logical_size(result, dim), axes_of_dim(result, dim), mesh, where);
}

/// Calls f(coordinates) for each micro-batch and rank, ranks first.
template <typename F>
void each_place(const Mesh& mesh, F&& f) {
  for (std::int64_t m = 0; m < mesh.size(kMicrobatchAxis); ++m) {
    for (std::int64_t r = 0; r < mesh.ranks(); ++r) {
      Coordinates where = coordinates_of(mesh, r);
      where[std::string(kMicrobatchAxis)] = m;
      f(where);
    }
  }
}

/// True of a copy that backward computes instead of keeping the original.
bool is_recomputed(const Node& node) {
  return node.phase == Phase::Backward && node.recompute != Recompute::None;
}

/// True of a gather in backward. Forward may have gathered the same, and did not keep it: compilers
/// would.
bool is_gathered_again(const Node& node) {
  return node.phase == Phase::Backward && node.op == &kAllGather;
}

/// True of a value that a copy may read and that was made before: compilers would find that the
/// copy computes what the original did, and keep that.
bool is_computed_once(const Node& node) {
  const bool given = node.op == &kState || node.op == &kBatch || node.op == &kConstant;
  return !given && !is_recomputed(node);
}

/// What backward has of the loss's gradient when it computes a copy: what the first node that is no
/// copy and stands behind it reads of that. None: backward has just begun.
std::optional<ValueId> cotangent_at(const Graph& graph, NodeId copy) {
  const auto comes_down = [&](ValueId v) {
    const Node& node = graph.node(v.node);
    return v.node < copy && node.phase == Phase::Backward && !node.op->traits.leaf &&
           !is_recomputed(node) && !is_gathered_again(node);
  };
  for (NodeId id = copy + 1; id < graph.size(); ++id) {
    const Node& reader = graph.node(id);
    if (reader.phase != Phase::Backward || is_recomputed(reader)) continue;
    const auto found = std::ranges::find_if(reader.inputs, comes_down);
    if (found != reader.inputs.end()) return *found;
  }
  return std::nullopt;
}

/// The error of an op, with the node's op, types and block.
Error told_of(const Error& error, const Graph& graph, NodeId id) {
  std::string types;
  for (const ValueId input : graph.node(id).inputs)
    types += text(types.empty() ? "" : ", ", graph.type(input));
  return error.with(text("of operands ", types, "; ", describe(graph, id)));
}

}  // namespace

std::vector<bool> nodes_read(const Graph& graph) {
  std::vector<bool> out(graph.nodes().size(), false);
  for (const Node& node : graph.nodes()) {
    for (const ValueId input : node.inputs) out[at(input.node)] = true;
  }
  for (const Output& output : graph.outputs()) out[at(output.value.node)] = true;
  return out;
}

Emitter::Known Emitter::graph(const Graph& graph, Leaves leaves) {
  Known known;
  const std::vector<bool> read = nodes_read(graph);
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (read[at(id)] || !graph.node(id).op->traits.leaf) node(graph, id, leaves, known);
  }
  return known;
}

void Emitter::node(const Graph& graph, NodeId id, Leaves leaves, Known& known) {
  const Node& node = graph.node(id);
  Values outs;
  try {
    if (node.op->traits.leaf && node.op != &kConstant) {
      outs = {leaves(node)};
    } else {
      outs = emit_op(*this, graph, id, operands(graph, id, known));
    }
  } catch (const Broken&) {
    throw;
  } catch (const Error& error) {
    throw told_of(error, graph, id);
  }
  check(outs.size() == node.results.size(), node.op->name, " is written with ", outs.size(),
        " results, it has ", node.results.size());
  for (std::size_t i = 0; i < outs.size(); ++i) {
    check(outs[i].type() == type_of(node.results[i].type), node.op->name, ": result ", i,
          " is written as ", outs[i].type(), ", it is a ", node.results[i].type);
    known[{id, static_cast<std::int32_t>(i)}] = outs[i];
  }
}

Values Emitter::operands(const Graph& graph, NodeId id, Known& known) {
  const Node& node = graph.node(id);
  const bool again = is_recomputed(node), gathered_again = is_gathered_again(node);
  Values out, apart;
  std::vector<std::size_t> places;  // of those apart
  for (const ValueId input : node.inputs) {
    if (gathered_again || (again && is_computed_once(graph.node(input.node)))) {
      places.push_back(out.size());
      apart.push_back(known.at(input));
    }
    out.push_back(known.at(input));
  }
  // Behind the loss's gradient: else compilers may recompute at once, and keep that. Later nodes
  // read the gradient that came through, as a compiler leaves out what nobody reads.
  const std::optional<ValueId> behind = again ? cotangent_at(graph, id) : std::nullopt;
  const bool waits = !apart.empty() && behind && known.contains(*behind);
  if (waits) apart.push_back(known.at(*behind));
  apart = code.kept_apart(apart);
  if (waits) known.at(*behind) = apart.back();
  for (std::size_t i = 0; i < places.size(); ++i) out[places[i]] = apart[i];
  return out;
}

Value Emitter::replica() {
  const Type type{Element::U32, {}};
  return code.convert(code.once(text("stablehlo.replica_id : ", type), type), Element::I64);
}

Value Emitter::by_rank(OfRank number) {
  std::vector<std::int64_t> table;
  each_place(mesh, [&](const Coordinates& where) { table.push_back(number(where)); });
  const std::size_t ranks = at(mesh.ranks());
  const auto is_first = [&](std::int64_t n) { return n == table[0]; };
  if (std::ranges::all_of(table, is_first))
    return code.constant(static_cast<double>(table[0]), Element::I64);
  bool by_time = false, by_replica = false;
  for (std::size_t i = 0; i < table.size(); ++i) {
    by_time = by_time || table[i] != table[i % ranks];
    by_replica = by_replica || table[i] != table[i / ranks * ranks];
  }
  check(!by_time || microbatch.has_value(), "a number of one micro-batch is read outside of them");
  if (!by_time) {
    table.resize(ranks);
  } else if (!by_replica) {
    for (std::size_t m = 0; m * ranks < table.size(); ++m) table[m] = table[m * ranks];
    table.resize(table.size() / ranks);
  }
  const Value place = !by_time      ? replica()
                      : !by_replica ? *microbatch
                                    : *microbatch * static_cast<double>(ranks) + replica();
  return code.reshape(code.dynamic_slice(code.table(table), 0, place, {1}), {});
}

Value Emitter::offset(const Result& result, int dim) {
  return by_rank([&](const Coordinates& where) -> std::int64_t {
    return extent_of(result, dim, mesh, where).start;
  });
}

Value Emitter::valid(const Result& result, int dim) {
  return by_rank([&](const Coordinates& where) -> std::int64_t {
    return extent_of(result, dim, mesh, where).valid;
  });
}

bool Emitter::is_offset_multiple(const Result& result, int dim, std::int64_t n) const {
  bool out = true;
  each_place(mesh, [&](const Coordinates& where) {
    out = out && extent_of(result, dim, mesh, where).start % n == 0;
  });
  return out;
}

std::pair<Value, Value> Emitter::local_place(const Value& ids, const Result& result, int dim) {
  require(logical_size(result, dim) < std::int64_t{1} << 31, "i32 ids name places in a dim of ",
          logical_size(result, dim));
  const auto narrow = [&](const Value& x) { return code.convert(x, Element::I32); };
  const Value place = ids - narrow(offset(result, dim));
  return {place, (place >= 0.0) & (place < narrow(valid(result, dim)))};
}

Value Emitter::hits(const Value& ids, const Result& result) {
  const int last = result.type.ndim() - 1;
  const auto [place, here] = local_place(ids, result, last);
  const Value places = code.iota({result.type.shape[last]}, 0, Element::I32);
  return eq(places, code.column(place)) & code.column(here);
}

Emitter::Counter Emitter::counter_of(const Result& result) {
  Counter out{result.type.shape, {}, {}};
  for (int d = 0; d < out.shape.ndim(); ++d) {
    out.sizes.push_back(logical_size(result, d));
    out.offsets.push_back(offset(result, d));
  }
  const int last = out.shape.ndim() - 1;
  out.in_fours = last >= 0 && out.shape[last] % 4 == 0 && out.sizes.back() % 4 == 0 &&
                 is_offset_multiple(result, last, 4);
  return out;
}

Value Emitter::key_of(const Node& node) {
  if (key) return *key;
  const int i = node.op->attrs.find("key");
  return code.integer(random_key(options.seed, std::get<std::string>(node.attrs[at(i)])),
                      Element::U64);
}

}  // namespace tessera::hlo
