#include "tessera/ir/parse.h"

#include <cmath>
#include <set>
#include <unordered_map>

#include "tessera/ir/blocks.h"
#include "tessera/ir/builder.h"
#include "tessera/ir/graph_words.h"
#include "tessera/ir/scanner.h"

namespace tessera {

namespace {

using namespace graph_words;

constexpr int kMaxDepth = 16;  // of graphs in attributes: text must not exhaust the stack
// A short line can repeat a long block, so what all take is bounded, in bytes; a training step of a
// hundred layers takes a tenth of the first, lines that repeat nothing less than the second.
constexpr std::size_t kMaxTaken = std::size_t{128} << 20, kMaxTakenPerByte = 64;

constexpr std::string_view kMarks =
    "stage=, recompute=, name=, cotangent=, contribution=, like=, remat_of=";

/// Reads one graph; attributes that are graphs have a reader of their own on the same scanner.
class GraphReader {
 public:
  /// `taken` counts the bytes of nodes beyond their text, over all graphs of the text.
  GraphReader(Scanner& in, FindOp find_op, std::size_t& taken, int depth)
      : in_(in), find_op_(find_op), taken_(taken), depth_(depth) {}
  /// Up to the end of the text, or the brace that closes an attribute.
  Graph read();

 private:
  /// A block whose nodes are written out.
  struct Definition {
    Block block;
    ValueIds reads;
    std::size_t first_state = 0, end_state = 0, first_output = 0, end_output = 0;
    std::size_t taken = 0;  // by it and the graphs in it; before its end, by all before it
  };

  void header();
  void line();
  void node();
  AttrValue attr(AttrKind kind);
  Result result();
  void mark(Node& node);
  void where(Node& node, std::size_t start);
  void state();
  void output(Output::Kind kind);
  void begin_block();
  void end_block();
  void repeat_block(Block to, const ValueIds& reads);
  void repeat(const Definition& from, const Carry& carry, std::int32_t stage, std::size_t start);

  Placement placement();
  void add(Node node, std::size_t start);
  void add(State state, std::size_t start);
  void add(Output output, std::size_t start);
  void check_defined(ValueId id, std::size_t start) const;

  const Graph& graph() const { return builder_->so_far(); }
  NodeId size() const { return graph().size(); }

  Scanner& in_;
  FindOp find_op_;
  std::size_t& taken_;
  int depth_;
  std::optional<Builder> builder_;
  std::set<std::string> state_paths_;
  std::set<std::pair<Output::Kind, std::string>> output_names_;
  std::optional<Definition> open_;
  std::unordered_map<NodeId, Definition> definitions_;
};

}  // namespace

Graph parse_graph(std::string_view text, FindOp find_op) {
  Scanner in(text);
  std::size_t taken = 0;
  Graph graph = GraphReader(in, find_op, taken, 0).read();
  if (!in.at_end()) in.expected("a node, or the end of the text");
  return graph;
}

namespace {

Graph GraphReader::read() {
  header();
  for (in_.lines(); !in_.at_end(); in_.lines()) {
    if (in_.peek() == '}' && !open_) break;
    line();
  }
  if (open_) in_.expected("the } of the block");
  return builder_->finish();
}

void GraphReader::header() {
  in_.lines();
  in_.keyword("graph", "'graph' and a form at the start");
  const int form = in_.one_of(kForms, "a form: global, placed or local");
  Mesh mesh;
  in_.blanks();
  if (in_.peek() != '\n') {
    in_.keyword("mesh", "'mesh' or the end of the line");
    mesh = in_.placed(in_.position(), [&] { return parse_mesh(in_.rest_of_line()); });
  }
  in_.end_of_line();
  builder_.emplace(static_cast<Form>(form), std::move(mesh));
}

void GraphReader::line() {
  if (in_.peek() == '%') return node();
  if (in_.peek() == '}') return end_block();
  const std::size_t start = in_.position();
  const std::string_view word = in_.word();
  if (word == "state") return state();
  if (word == "block") return begin_block();
  for (std::size_t kind = 0; kind < kOutputs.size(); ++kind) {
    if (word == kOutputs[kind]) return output(static_cast<Output::Kind>(kind));
  }
  in_.back_to(start);
  in_.expected(
      "a node like '%3 = add(%1, %2) : f32[4]', or state, next, metric, slot, accumulate, send, "
      "block or "
      "}");
}

void GraphReader::node() {
  const std::size_t start = in_.position();
  if (in_.node_id() != size())
    in_.wrong(start, text("expected %", size(), ": nodes are numbered in order"));
  in_.expect('=', "'=' after the node's number");
  in_.blanks();
  const std::size_t at = in_.position();
  const std::string_view name = in_.word();
  Node node;
  node.op = find_op_(name);
  if (node.op == nullptr)
    in_.wrong(at, text("expected an op, found '", name, "', which the op table does not have"));
  node.inputs = in_.values();
  std::vector<AttrValue> attrs;
  for (const AttrDef& def : node.op->attrs) {
    const std::string what = text("attribute ", def.name, "= of ", name);
    in_.blanks();
    if (def.optional && in_.peek() == ':') break;
    in_.keyword(def.name, what);
    in_.expect('=', what);
    attrs.push_back(attr(def.kind));
  }
  node.attrs = Attrs(std::move(attrs));
  in_.expect(':', "':' and the types of the results");
  if (in_.accept('(')) {
    in_.expect(')', "')' for no results, or types");
  } else {
    do node.results.push_back(result());
    while (in_.accept(','));
  }
  for (in_.blanks(); in_.peek() != '\n'; in_.blanks()) mark(node);
  in_.end_of_line();
  taken_ += sizeof(Node);
  add(std::move(node), start);
}

AttrValue GraphReader::attr(AttrKind kind) {
  in_.blanks();
  const std::size_t start = in_.position();
  if (kind != AttrKind::Graph) {
    const std::string_view line =
        kind == AttrKind::Text ? in_.quoted_word("a text in quotes") : in_.word();
    return in_.placed(start, [&] { return parse_attr(kind, line); });
  }
  in_.expect('{', "'{' and a graph");
  if (depth_ == kMaxDepth)
    in_.wrong(start, text("graphs in graphs are more than ", kMaxDepth, " deep"));
  auto graph = std::make_shared<const Graph>(GraphReader(in_, find_op_, taken_, depth_ + 1).read());
  in_.expect('}', "'}' after the graph");
  return graph;
}

/// "f32[4,8]", "f32[4,8] at [dp,-]", "f32[4,8] at [dp,-] of [16,8]"
Result GraphReader::result() {
  in_.blanks();
  std::size_t start = in_.position();
  Result out;
  const std::string_view type = in_.word();
  if (type.empty()) in_.expected("a type like f32[4,256]");
  out.type = in_.placed(start, [&] { return parse_type(type); });
  const auto follows = [&](std::string_view keyword) {
    in_.blanks();
    start = in_.position();
    if (in_.word() == keyword) return true;
    in_.back_to(start);
    return false;
  };
  if (follows("at")) out.placement = placement();
  if (follows("of")) {
    in_.blanks();
    start = in_.position();
    const std::string_view sizes = in_.word();
    out.logical = in_.placed(start, [&] { return parse_type(text("f32", sizes)).shape; });
  }
  return out;
}

/// One of the short fields behind the types, in any order.
void GraphReader::mark(Node& node) {
  const std::size_t start = in_.position();
  if (in_.accept('@')) {
    node.block = in_.path("a block after '@'");
    return;
  }
  const std::string_view word = in_.word();
  if (const std::optional<Phase> phase = find_word<Phase>(kPhases, word)) {
    node.phase = *phase;
  } else if (!in_.accept('=')) {
    in_.back_to(start);
    where(node, start);
  } else if (word == "stage") {
    node.stage = in_.number<std::int32_t>("a stage");
  } else if (word == "recompute") {
    node.recompute = static_cast<Recompute>(in_.one_of(kRecomputes, join(kRecomputes)));
  } else if (word == "name") {
    node.name = in_.path("a name in quotes");
  } else if (word == "cotangent" || word == "contribution") {
    node.cotangent = Cotangent{in_.value(), word == "cotangent"};
  } else if (word == "like" || word == "remat_of") {
    (word == "like" ? node.like : node.remat_of) = in_.node_id();
  } else {
    in_.wrong(start, text("expected ", kMarks, " or file:line, found '", word, "='"));
  }
}

/// "nn/gpt.cpp:88"; the file may be in quotes.
void GraphReader::where(Node& node, std::size_t start) {
  std::string file;
  const bool in_quotes = in_.peek() == '"';
  if (in_quotes) file = in_.path("a file");
  const std::string_view word = in_.word();
  const std::size_t colon = word.rfind(':');
  int line = 0;
  const std::string_view digits = word.substr(colon == word.npos ? word.size() : colon + 1);
  const char* end = digits.data() + digits.size();
  if (digits.empty() || (in_quotes && colon != 0) ||
      std::from_chars(digits.data(), end, line).ptr != end) {
    in_.back_to(start);
    in_.expected(text("a mark: @block, fwd, bwd, upd, ", kMarks, ", file:line"));
  }
  if (!in_quotes) file = word.substr(0, colon);
  node.where = Where::read(std::move(file), line);
}

void GraphReader::state() {
  const std::size_t start = in_.position();
  State state;
  state.path = in_.path("the state's path in quotes");
  in_.expect('=', "'=' and the state's value");
  state.value = in_.value();
  state.role = static_cast<Role>(
      in_.one_of(kRoles, "a role: parameter, moment, counter, cache or reference"));
  state.init.kind =
      static_cast<Init::Kind>(in_.one_of(kInits, "a first value like constant=0 or normal=0.02"));
  in_.expect('=', "'=' and a number");
  state.init.value = in_.number<double>("a number");
  if (std::isnan(state.init.value)) in_.wrong(start, "expected a first value, found nan");
  for (in_.blanks(); in_.peek() != '\n'; in_.blanks()) {
    const int use = in_.one_of(std::array<std::string_view, 2>{"home", "use"},
                               "home=, use= or the end of the line");
    in_.expect('=', "'=' and a placement");
    (use == 0 ? state.home : state.use) = placement();
  }
  in_.end_of_line();
  add(std::move(state), start);
}

void GraphReader::output(Output::Kind kind) {
  const std::size_t start = in_.position();
  std::string name = in_.path("the output's name in quotes");
  in_.expect('=', "'=' and the output's value");
  const ValueId id = in_.value();
  in_.end_of_line();
  add(Output{kind, std::move(name), id}, start);
}

/// "block %4 in layers.0 (%1) {", or "block %9 in layers.1 (%8) as %4 stage=1".
void GraphReader::begin_block() {
  const std::size_t start = in_.position();
  if (open_) in_.wrong(start, "expected a node or }: blocks do not nest");
  if (in_.node_id() != size())
    in_.wrong(start, text("expected %", size(), ", the block's first node"));
  in_.keyword("in", "'in' and the block's path");
  Block block{in_.path("the block's path"), {}};
  ValueIds reads = in_.values();
  if (!in_.accept('{')) return repeat_block(std::move(block), reads);
  in_.end_of_line();
  block.nodes.push_back(size());
  open_ = Definition{std::move(block),         std::move(reads),
                     graph().states().size(),  0,
                     graph().outputs().size(), 0,
                     in_.position() + taken_};
}

void GraphReader::end_block() {
  const std::size_t start = in_.position();
  in_.expect('}', "'}'");
  in_.end_of_line();
  const NodeId first = open_->block.nodes[0];
  if (first == size()) in_.wrong(start, "expected a node: the block is empty");
  for (NodeId id = first + 1; id < size(); ++id) open_->block.nodes.push_back(id);
  open_->end_state = graph().states().size();
  open_->end_output = graph().outputs().size();
  open_->taken = in_.position() + taken_ - open_->taken;
  definitions_.emplace(first, std::move(*open_));
  open_.reset();
}

void GraphReader::repeat_block(Block to, const ValueIds& reads) {
  in_.keyword("as", "'{' and the block's nodes, or 'as' and an earlier block");
  in_.blanks();
  const std::size_t start = in_.position();
  const auto found = definitions_.find(in_.node_id());
  if (found == definitions_.end())
    in_.wrong(start, "expected the first node of an earlier block that has a body");
  const Definition& from = found->second;
  if (reads.size() != from.reads.size()) {
    in_.wrong(start, text("expected ", from.reads.size(), " values in (), as block ",
                          from.block.path, " has, not ", reads.size()));
  }
  std::int32_t stage = -1;
  in_.blanks();
  if (in_.peek() != '\n') {
    in_.keyword("stage", "stage= or the end of the line");
    in_.expect('=', "'=' and a stage");
    stage = in_.number<std::int32_t>("a stage");
  }
  in_.end_of_line();
  // A longer path can stand in the place of every other byte.
  const std::size_t from_path = from.block.path.size() + 1, to_path = to.path.size() + 1;
  taken_ += std::max(from.taken, from.taken * to_path / from_path);
  if (taken_ > kMaxTaken + kMaxTakenPerByte * in_.position())
    in_.wrong(start, "repeated blocks take more memory than a graph may; write fewer of them");
  for (std::size_t i = 0; i < from.block.nodes.size(); ++i)
    to.nodes.push_back(size() + static_cast<NodeId>(i));
  repeat(from, Carry(from.block, to, from.reads, reads), stage, start);
}

void GraphReader::repeat(const Definition& from, const Carry& carry, std::int32_t stage,
                         std::size_t start) {
  for (const NodeId id : from.block.nodes) {
    Node node = in_.placed(start, [&] { return carry(graph().node(id)); });
    node.stage = stage;
    add(std::move(node), start);
  }
  for (std::size_t i = from.first_state; i < from.end_state; ++i) {
    add(in_.placed(start, [&] { return carry(graph().states()[i]); }), start);
  }
  for (std::size_t i = from.first_output; i < from.end_output; ++i) {
    add(in_.placed(start, [&] { return carry(graph().outputs()[i]); }), start);
  }
}

Placement GraphReader::placement() {
  in_.blanks();
  const std::size_t start = in_.position();
  const std::string_view word = in_.word();
  return in_.placed(start, [&] { return parse_placement(word); });
}

void GraphReader::add(Node node, std::size_t start) {
  for (const ValueId input : node.inputs) check_defined(input, start);
  ValueIds inputs = node.inputs;
  builder_->copy(std::move(node), std::move(inputs));
}

void GraphReader::add(State state, std::size_t start) {
  check_defined(state.value, start);
  if (!state_paths_.insert(state.path).second)
    in_.wrong(start, text("state '", state.path, "' is declared twice"));
  builder_->add_state(std::move(state));
}

void GraphReader::add(Output output, std::size_t start) {
  check_defined(output.value, start);
  if (!output_names_.insert({output.kind, output.name}).second) {
    in_.wrong(start, text("output '", output.name, "' is given twice"));
  }
  builder_->output(output.kind, output.name, Value(*builder_, output.value));
}

void GraphReader::check_defined(ValueId id, std::size_t start) const {
  const bool known = id.node >= 0 && id.node < size() && id.index >= 0 &&
                     id.index < static_cast<std::int32_t>(graph().node(id.node).results.size());
  if (!known) in_.wrong(start, text("expected values that are defined above, found ", id));
}

}  // namespace

}  // namespace tessera
