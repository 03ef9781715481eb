#include "tessera/ir/blocks.h"

#include <algorithm>

#include "tessera/ir/builder.h"
#include "tessera/ir/hasher.h"

namespace tessera {

namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Visits every value that a node mentions. Nodes mentioned as such count as their first result;
/// ids below 0 are none.
template <typename Visit>
void for_each_mention(const Node& node, const Visit& visit) {
  const auto one = [&](ValueId value) {
    if (value.valid()) visit(value);
  };
  for (const ValueId input : node.inputs) one(input);
  if (node.cotangent) one(node.cotangent->of);
  one({node.like, 0});
  one({node.remat_of, 0});
}

std::unordered_map<NodeId, NodeId> positions(const Block& block) {
  std::unordered_map<NodeId, NodeId> out;
  for (std::size_t i = 0; i < block.nodes.size(); ++i)
    out.emplace(block.nodes[i], static_cast<NodeId>(i));
  return out;
}

/// True where the blocks differ in nothing but paths, stages and places in the source.
bool isomorphic(const Graph& graph, const Block& a, const Block& b) {
  if (a.nodes.size() != b.nodes.size()) return false;
  const ValueIds a_reads = outside_values(graph, a), b_reads = outside_values(graph, b);
  if (a_reads.size() != b_reads.size()) return false;
  const Carry carry(a, b, a_reads, b_reads);
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    const Node& other = graph.node(b.nodes[i]);
    Node carried = carry(graph.node(a.nodes[i]));
    carried.where = other.where;
    carried.stage = other.stage;
    if (!(carried == other)) return false;
  }
  return true;
}

}  // namespace

std::vector<BlockClass> block_classes(const Graph& graph, int depth) {
  std::vector<Block> blocks;
  std::unordered_map<std::string_view, std::size_t> index;  // keys live in the graph
  for (NodeId id = 0; id < graph.size(); ++id) {
    const std::string_view path = block_of(graph.node(id).block, depth);
    if (path.empty()) continue;
    const auto [found, is_new] = index.try_emplace(path, blocks.size());
    if (is_new) blocks.push_back({std::string(path), {}});
    blocks[found->second].nodes.push_back(id);
  }
  std::vector<BlockClass> classes;
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> by_hash;
  for (Block& block : blocks) {
    std::vector<std::size_t>& candidates = by_hash[structural_hash(graph, block)];
    const auto same = std::find_if(candidates.begin(), candidates.end(), [&](std::size_t c) {
      return isomorphic(graph, classes[c].blocks[0], block);
    });
    if (same != candidates.end()) {
      classes[*same].blocks.push_back(std::move(block));
    } else {
      candidates.push_back(classes.size());
      classes.push_back({{std::move(block)}});
    }
  }
  return classes;
}

std::string_view block_of(std::string_view path, int depth) {
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    const bool numeric = !part.empty() && std::all_of(part.begin(), part.end(),
                                                      [](char c) { return c >= '0' && c <= '9'; });
    if (numeric && --depth == 0) return path.substr(0, end);
    begin = end + 1;
  }
  return {};
}

ValueIds outside_values(const Graph& graph, const Block& block) {
  const auto inside = positions(block);
  ValueIds out;
  std::map<ValueId, bool> seen;
  const auto visit = [&](ValueId value) {
    if (!inside.contains(value.node) && seen.emplace(value, true).second) out.push_back(value);
  };
  for (const NodeId id : block.nodes) for_each_mention(graph.node(id), visit);
  return out;
}

std::uint64_t structural_hash(const Graph& graph, const Block& block) {
  const auto inside = positions(block);
  Hasher hash(block.path);
  std::map<ValueId, std::uint64_t> outside;
  for (const NodeId id : block.nodes) {
    hash.add_node(graph.node(id));
    for_each_mention(graph.node(id), [&](ValueId value) {
      const auto found = inside.find(value.node);
      if (found != inside.end()) {
        hash.add(static_cast<std::uint64_t>(found->second));
        hash.add(static_cast<std::uint64_t>(value.index));
      } else {
        hash.add(~outside.emplace(value, outside.size()).first->second);
      }
    });
  }
  return hash.value();
}

Carry::Carry(const Block& from, const Block& to, const ValueIds& from_reads,
             const ValueIds& to_reads)
    : from_(from.path), to_(to.path) {
  check(from.nodes.size() == to.nodes.size() && from_reads.size() == to_reads.size(), "blocks ",
        from.path, " and ", to.path, " differ in size");
  for (std::size_t i = 0; i < from.nodes.size(); ++i) nodes_.emplace(from.nodes[i], to.nodes[i]);
  for (std::size_t i = 0; i < from_reads.size(); ++i) reads_.emplace(from_reads[i], to_reads[i]);
}

Node Carry::operator()(Node node) const {
  for (ValueId& input : node.inputs) input = carry(input);
  if (node.cotangent) node.cotangent->of = carry(node.cotangent->of);
  node.like = carry(node.like);
  node.remat_of = carry(node.remat_of);
  rename(node);
  return node;
}

State Carry::operator()(State state) const {
  state.path = carry(state.path);
  state.value = carry(state.value);
  return state;
}

Output Carry::operator()(Output output) const {
  output.name = carry(output.name);
  output.value = carry(output.value);
  return output;
}

ValueId Carry::carry(ValueId value) const {
  if (!value.valid()) return value;
  const auto inside = nodes_.find(value.node);
  if (inside != nodes_.end()) return {inside->second, value.index};
  const auto outside = reads_.find(value);
  require(outside != reads_.end(), "block ", from_, " mentions ", value,
          ", which its first line does not list");
  return outside->second;
}

std::string Carry::carry(std::string_view line) const { return replace_path(line, from_, to_); }

void Carry::rename(Node& node) const {
  node.block = carry(node.block);
  node.name = carry(node.name);
  std::vector<AttrValue> attrs(node.attrs.begin(), node.attrs.end());
  for (AttrValue& attr : attrs) {
    if (auto* line = std::get_if<std::string>(&attr)) *line = carry(*line);
    if (auto* graph = std::get_if<std::shared_ptr<const Graph>>(&attr)) *graph = carry(*graph);
  }
  node.attrs = Attrs(std::move(attrs));
}

/// Paths change; ids inside an attribute are its own.
std::shared_ptr<const Graph> Carry::carry(const std::shared_ptr<const Graph>& graph) const {
  Builder builder(graph->form(), graph->mesh());
  for (Node node : graph->nodes()) {
    rename(node);
    ValueIds inputs = node.inputs;
    builder.copy(std::move(node), std::move(inputs));
  }
  for (State state : graph->states()) {
    state.path = carry(state.path);
    builder.add_state(std::move(state));
  }
  for (const Output& output : graph->outputs()) {
    builder.output(output.kind, carry(output.name), Value(builder, output.value));
  }
  auto out = std::make_shared<const Graph>(builder.finish());
  return *out == *graph ? graph : out;
}

std::string replace_path(std::string_view line, std::string_view from, std::string_view to) {
  if (from.empty()) return std::string(line);
  std::string out;
  std::size_t done = 0;
  for (std::size_t at = line.find(from); at != std::string_view::npos;
       at = line.find(from, at + from.size())) {
    const std::size_t end = at + from.size();
    const bool starts = at == 0 || (!is_word(line[at - 1]) && line[at - 1] != '.');
    const bool ends = end == line.size() || !is_word(line[end]);
    if (!starts || !ends) continue;
    out.append(line.substr(done, at - done)).append(to);
    done = end;
  }
  return out.append(line.substr(done));
}

}  // namespace tessera
