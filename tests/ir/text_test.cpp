// The text form: what is printed reads back, to the last field.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <set>

#include "ir/small_ops.h"
#include "repo_file.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/print.h"

namespace tessera {
namespace {

Graph parsed(std::string_view line) { return parse_graph(line, find_small_op); }

void expect_round_trip(const Graph& graph) {
  const std::string printed = to_text(graph);
  Graph back;
  try {
    back = parsed(printed);
  } catch (const Error& error) {
    FAIL() << error.what() << "\n" << printed;
  }
  ASSERT_EQ(back.nodes().size(), graph.nodes().size()) << printed;
  for (NodeId id = 0; id < graph.size(); ++id)
    ASSERT_TRUE(back.node(id) == graph.node(id)) << id << "\n" << printed;
  ASSERT_TRUE(back.states() == graph.states()) << printed;
  ASSERT_TRUE(back.outputs() == graph.outputs()) << printed;
  ASSERT_TRUE(back == graph) << printed;
  ASSERT_EQ(to_text(back), printed);
}

TEST(GraphText, ASmallGraphReadsLikeAProgram) {
  Builder b;
  const TensorType type{DType::F32, {2, 3}, {}};
  const Value x = b.batch("x", type, Where{});
  {
    const Scope scope(b, "head", {"nn/small.cpp", 7});
    const Value w = b.state("w", type, Role::Parameter, {Init::Kind::Normal, 0.02});
    const Value y = b.add(kTestAdd, {x, w});
    b.set_name(y, "logits");
    b.next(w, y);
  }
  const Graph graph = b.finish();
  EXPECT_EQ(to_text(graph),
            "graph global\n"
            "%0 = batch() name=\"x\" dtype=f32 shape=[2,3] : f32[2,3]\n"
            "%1 = state() path=\"head.w\" dtype=f32 shape=[2,3] : f32[2,3] @head nn/small.cpp:7\n"
            "state \"head.w\" = %1 parameter normal=0.02\n"
            "%2 = test_add(%0, %1) : f32[2,3] @head name=\"logits\" nn/small.cpp:7\n"
            "next \"head.w\" = %2\n");
  expect_round_trip(graph);
}

TEST(GraphText, BlocksThatRepeatArePrintedOnce) {
  EXPECT_EQ(
      to_text(layered_graph(2)),
      "graph global\n"
      "%0 = batch() name=\"x\" dtype=f32 shape=[2,4] : f32[2,4]\n"
      "block %1 in layers.0 (%0) {\n"
      "  %1 = state() path=\"layers.0.w\" dtype=f32 shape=[2,4] : f32[2,4] @layers.0 "
      "nn/small.cpp:10\n"
      "  state \"layers.0.w\" = %1 parameter normal=0.02\n"
      "  %2 = test_add(%0, %1) : f32[2,4] @layers.0.mlp nn/small.cpp:11\n"
      "  %3 = test_many(%2) count=1 scale=0.1 flag=true key=\"layers.0.mlp.drop\" dims=[0,1] "
      "rates=[0.5,1] dtype=f32 : f32[2,4] "
      "@layers.0.mlp nn/small.cpp:11\n"
      "  %4 = test_pair(%3) : f32[2,4], f32[2,4] @layers.0.mlp nn/small.cpp:11\n"
      "  %5 = test_add(%4, %4.1) : f32[2,4] @layers.0.mlp name=\"layers.0.residual\" "
      "nn/small.cpp:11\n"
      "  %6 = test_add(%0, %5) : f32[2,4] @layers.0.mlp nn/small.cpp:11\n"
      "}\n"
      "block %7 in layers.1 (%6) as %1\n"
      "%13 = test_add(%12, %12) : f32[2,4]\n"
      "metric \"loss\" = %13\n"
      "block %14 in layers.1 (%13, %9, %8, %6) {\n"
      "  %14 = test_add(%13, %9) : f32[2,4] @layers.1.mlp bwd cotangent=%8 like=%9 "
      "nn/small.cpp:11\n"
      "  %15 = test_add(%14, %8) : f32[2,4] @layers.1.mlp bwd nn/small.cpp:11\n"
      "  %16 = test_add(%14, %13) : f32[2,4] @layers.1.mlp bwd contribution=%6 nn/small.cpp:11\n"
      "}\n"
      "block %17 in layers.0 (%16, %3, %2, %0) as %14\n"
      "block %20 in layers.0 (%18, %1) {\n"
      "  %20 = state() path=\"layers.0.w.m\" dtype=f32 shape=[2,4] : f32[2,4] @layers.0 upd "
      "nn/small.cpp:20\n"
      "  state \"layers.0.w.m\" = %20 moment constant=0\n"
      "  %21 = test_add(%20, %18) : f32[2,4] @layers.0 upd nn/small.cpp:20\n"
      "  %22 = test_add(%1, %21) : f32[2,4] @layers.0 upd nn/small.cpp:20\n"
      "  next \"layers.0.w\" = %22\n"
      "  next \"layers.0.w.m\" = %21\n"
      "}\n"
      "block %23 in layers.1 (%15, %7) as %20\n");
}

TEST(GraphText, OutputsThatDoNotRepeatStandBehindTheirBlocks) {
  Builder b;
  Value x = b.batch("x", {DType::F32, {2}, {}}, Where{});
  for (int i = 0; i < 3; ++i) {
    const Scope scope(b, text("layers.", i), {});
    const Value half = b.add(kTestAdd, {x, x});
    x = b.add(kTestAdd, {half, x});
    b.output(Output::Kind::Slot, text("v", half.id().node), half);
  }
  const Graph graph = b.finish();
  EXPECT_EQ(to_text(graph),
            "graph global\n"
            "%0 = batch() name=\"x\" dtype=f32 shape=[2] : f32[2]\n"
            "block %1 in layers.0 (%0) {\n"
            "  %1 = test_add(%0, %0) : f32[2] @layers.0\n"
            "  %2 = test_add(%1, %0) : f32[2] @layers.0\n"
            "}\n"
            "slot \"v1\" = %1\n"
            "block %3 in layers.1 (%2) as %1\n"
            "slot \"v3\" = %3\n"
            "block %5 in layers.2 (%4) as %1\n"
            "slot \"v5\" = %5\n");
  expect_round_trip(graph);
}

TEST(GraphText, TheTextOfManyBlocksGrowsByALineEach) {
  const auto lines = [](const Graph& graph) {
    const std::string printed = to_text(graph);
    return std::count(printed.begin(), printed.end(), '\n');
  };
  // Forward, backward and update: three lines per block beyond the first.
  EXPECT_EQ(lines(layered_graph(96)), lines(layered_graph(2)) + 3 * 94);
  expect_round_trip(layered_graph(1));
  expect_round_trip(layered_graph(96));
  expect_round_trip(layered_graph(7, 4, true));  // stages differ within a class
}

TEST(GraphText, LargeGraphsTakeLittleTime) {
  const Graph graph = layered_graph(2000);  // 24,000 nodes
  const auto begin = std::chrono::steady_clock::now();
  const std::string printed = to_text(graph);
  const auto middle = std::chrono::steady_clock::now();
  const Graph back = parsed(printed);
  const auto end = std::chrono::steady_clock::now();
  EXPECT_TRUE(back == graph);
  RecordProperty("print_us", static_cast<int>((middle - begin) / std::chrono::microseconds(1)));
  RecordProperty("parse_us", static_cast<int>((end - middle) / std::chrono::microseconds(1)));
}

constinit const OpDef kMatmulOfDocs = {
    .name = "matmul",
    .doc = "as in ops, which this room does not see",
    .attrs = {{"rule", AttrKind::Text}},
};

TEST(GraphText, TheExampleInTheDocsIsPrintedSo) {
  std::ifstream file(repo_file("docs/internals/graph-text.md"));
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::string fence = "```text\n";
  const std::size_t begin = page.find(fence) + fence.size();
  const std::string example = page.substr(begin, page.find("```", begin) - begin);
  const Graph graph = parse_graph(example, [](std::string_view name) -> const OpDef* {
    return name == "matmul" ? &kMatmulOfDocs : name == "add" ? &kTestAdd : find_small_op(name);
  });
  std::string printed = to_text(graph);
  for (std::size_t at; (at = printed.find("test_add")) != std::string::npos;) printed.erase(at, 5);
  EXPECT_EQ(printed, example);
}

// ---- Random graphs. Anything that the types allow must survive, whatever it means.

class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed) {}

  Graph make(int max_nodes, int depth = 0) {
    const Form form = pick<Form>({Form::Global, Form::Placed, Form::Local});
    Builder b(form,
              pick<Mesh>({Mesh(), parse_mesh("dp=4 tp=2 mb=3@time"), parse_mesh("rack=2@rack")}));
    const int nodes = below(max_nodes + 1);
    for (int i = 0; i < nodes; ++i) {
      ValueIds inputs;
      for (int k = below(4); k > 0; --k) {
        if (const ValueId v = value(b); v.valid()) inputs.push_back(v);
      }
      b.copy(node(b, depth), inputs);
    }
    std::set<std::string> paths;
    for (int i = below(4); i > 0; --i) {
      const ValueId v = value(b);
      if (!v.valid() || !paths.insert(line(i)).second) continue;
      State state{line(i),
                  v,
                  pick<Role>({Role::Parameter, Role::Moment, Role::Counter, Role::Cache}),
                  {},
                  placement(),
                  placement()};
      state.init = {pick<Init::Kind>({Init::Kind::Constant, Init::Kind::Normal}), number()};
      b.add_state(state);
    }
    for (int i = below(5); i > 0; --i) {
      const ValueId v = value(b);
      if (v.valid()) b.output(static_cast<Output::Kind>(below(4)), line(i), Value(b, v));
    }
    return b.finish();
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  template <typename T>
  T pick(std::initializer_list<T> items) {
    return *(items.begin() + below(static_cast<int>(items.size())));
  }
  double number() {
    return pick<double>({0.0, -0.0, 1.0, 0.1, -1e300, 5e-324, 1.0 / 3,
                         std::numeric_limits<double>::infinity(),
                         -std::numeric_limits<double>::infinity()});
  }
  std::string line(int i = 0) {
    return text(pick<std::string>({"", "w", "layers.0.w", "layers.1.w", "two words",
                                   "a \"quote\" and a \\", "#x", "%1", "line\nbreak", "\x01\x7f\t",
                                   "grün", "x=1", "a,b", "{", "1:2"}),
                i);
  }
  ValueId value(const Builder& b) {
    if (b.so_far().size() == 0) return {};
    const NodeId id = below(b.so_far().size());
    const int results = static_cast<int>(b.so_far().node(id).results.size());
    return results == 0 ? ValueId{} : ValueId{id, below(results)};
  }
  Shared<Placement> placement() {
    return pick<Shared<Placement>>({{},
                                    parse_placement("[]"),
                                    parse_placement("[dp.mb,-,tp]"),
                                    parse_placement("[-]+dp+tp:max@host"),
                                    parse_placement("[dp]@host")});
  }
  Result result() {
    return {pick<TensorType>({parse_type("f32[]"), parse_type("bf16[4,256]"), parse_type("i64[0]"),
                              parse_type("f32[768,768]@packed:2359296")}),
            placement(), pick<Shape>({{}, {4, 8}, {0}})};
  }
  AttrValue attr(AttrKind kind, int depth) {
    switch (kind) {
      case AttrKind::Int: return std::int64_t{pick<std::int64_t>({0, -1, std::int64_t{1} << 62})};
      case AttrKind::Float: return number();
      case AttrKind::Bool: return below(2) == 1;
      case AttrKind::Text: return line();
      case AttrKind::Ints: return pick<std::vector<std::int64_t>>({{}, {1}, {-1, 2, 3}});
      case AttrKind::Floats: return std::vector<double>(static_cast<std::size_t>(below(3)), number());
      case AttrKind::DType: return pick<DType>({DType::F32, DType::Bool, DType::BF16});
      case AttrKind::Graph: return std::make_shared<const Graph>(make(3, depth + 1));
    }
    return {};
  }
  Node node(const Builder& b, int depth) {
    Node out;
    out.op =
        pick<const OpDef*>({&kTestAdd, &kTestMany, &kTestMany, &kTestPair,
                            depth < 2 ? &kTestBody : &kTestAdd, &kTestSink, &kBatch, &kConstant});
    std::vector<AttrValue> attrs;
    for (const AttrDef& def : out.op->attrs) {
      if (def.optional && below(2) == 0) break;
      attrs.push_back(attr(def.kind, depth));
    }
    out.attrs = Attrs(std::move(attrs));
    for (int i = below(4); i > 0; --i) out.results.push_back(result());
    out.block = pick<std::string>(
        {"", "layers.0", "layers.1", "layers.0.mlp", "head", "an odd \"block\"", "#"});
    out.phase = pick<Phase>({Phase::Forward, Phase::Forward, Phase::Backward, Phase::Update});
    out.stage = pick<std::int32_t>({-1, -1, 0, 3});
    out.recompute = pick<Recompute>(
        {Recompute::None, Recompute::Elementwise, Recompute::Selective, Recompute::Full});
    if (below(2) == 1)
      out.where =
          Where::read(pick<std::string>({"", "nn/gpt.cpp", "my file.cpp", "a:b"}), below(3) * 40);
    if (below(3) == 0) out.name = line();
    if (below(3) == 0)
      out.cotangent = Cotangent{pick<ValueId>({value(b), {}, {1000, 2}}), below(2) == 1};
    if (below(3) == 0) out.like = below(1000);
    if (below(3) == 0) out.remat_of = below(10);
    return out;
  }
  std::mt19937 random_;
};

TEST(GraphText, RandomGraphsSurvive) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(seed);
    expect_round_trip(RandomGraph(seed).make(12));
    if (HasFatalFailure()) return;
  }
}

/// `graph` twice or more often: the same nodes in blocks l.0, l.1, ..., some of them changed a
/// little.
Graph repeated(const Graph& graph, std::mt19937& random) {
  Builder b(graph.form(), graph.mesh());
  for (int copy = 0; copy < 4; ++copy) {
    const NodeId base = b.so_far().size();
    for (NodeId id = 0; id < graph.size(); ++id) {
      Node node = graph.node(id);
      node.block = text("l.", copy, node.block.empty() ? "" : ".", node.block);
      node.phase = Phase::Forward;
      node.stage = copy / 2;
      if (node.cotangent && node.cotangent->of.valid() && node.cotangent->of.node < graph.size()) {
        node.cotangent->of.node += base;
      }
      if (node.like >= 0 && node.like < graph.size()) node.like += base;
      if (random() % 20 == 0) node.name = text("l.", random() % 4, ".odd");
      ValueIds inputs = node.inputs;
      for (ValueId& input : inputs) input.node += base;
      b.copy(std::move(node), std::move(inputs));
      if (!graph.node(id).results.empty() && random() % 3 == 0) {
        b.add_state({text("l.", copy, ".s", id), {base + id, 0}, Role::Counter, {}, {}, {}});
        b.output(Output::Kind::Slot, text("l.", copy, ".o", id), Value(b, {base + id, 0}));
      }
    }
  }
  return b.finish();
}

TEST(GraphText, RandomBlocksSurvive) {
  std::mt19937 random(1);
  int folded = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = repeated(RandomGraph(seed).make(5), random);
    folded += to_text(graph).find(" as %") != std::string::npos;
    expect_round_trip(graph);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(folded, 100);
}

TEST(GraphText, PathsInsideAttributeGraphsFollowTheirBlock) {
  Builder b;
  Value x = b.batch("x", {DType::F32, {2}, {}}, Where{});
  for (int i = 0; i < 3; ++i) {
    Builder body;
    body.set_mark({text("layers.", i, ".act"), Phase::Forward, -1, {}});
    const Value in = body.batch("in", {DType::F32, {2}, {}}, Where{});
    body.output(Output::Kind::Metric, "out", body.add(kTestAdd, {in, in}));
    const Scope scope(b, text("layers.", i), {});
    x = b.add(kTestBody, {x}, {std::make_shared<const Graph>(body.finish()), std::int64_t{1}});
    x = b.add(kTestAdd, {x, x});
  }
  const Graph graph = b.finish();
  const std::string printed = to_text(graph);
  EXPECT_NE(printed.find("block %5 in layers.2 (%4) as %1\n"), std::string::npos) << printed;
  EXPECT_NE(
      printed.find("  %1 = test_body(%0) body={\n"
                   "      graph global\n"
                   "      %0 = batch() name=\"in\" dtype=f32 shape=[2] : f32[2] @layers.0.act\n"
                   "      %1 = test_add(%0, %0) : f32[2] @layers.0.act\n"
                   "      metric \"out\" = %1\n"
                   "  } count=1 : f32[2] @layers.0\n"),
      std::string::npos)
      << printed;
  expect_round_trip(graph);
}

TEST(GraphText, HandwrittenTextMayBeLoose) {
  const Graph graph = parsed(
      "# a comment\n\n  graph placed   mesh dp=2 # two ranks\n"
      "\t%0 = batch( ) name=\"x\" dtype=f32 shape=[ 2 ] : f32[2] at [dp] nn/a.cpp:3 fwd @a.b\r\n"
      "%1=test_add( %0,%0 ):f32[2] at [dp]\n"
      "metric loss = %1");
  EXPECT_EQ(to_text(graph),
            "graph placed mesh dp=2\n"
            "%0 = batch() name=\"x\" dtype=f32 shape=[2] : f32[2] at [dp] @a.b nn/a.cpp:3\n"
            "%1 = test_add(%0, %0) : f32[2] at [dp]\n"
            "metric \"loss\" = %1\n");
}

// ---- Errors.

std::string parse_error(std::string_view line) {
  try {
    parsed(line);
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::Usage) << error.what();
    return error.what();
  }
  return "no error";
}

struct ErrorCase {
  const char *name, *text, *says;
};
const ErrorCase kErrors[] = {
    {"nothing", "",
     "line 1, column 1: expected 'graph' and a form at the start, found the end of the line"},
    {"no form", "graph  whole\n",
     "line 1, column 8: expected a form: global, placed or local, found 'whole'"},
    {"a mesh that is none", "graph local mesh dp\n",
     "line 1, column 17: mesh 'dp': 'dp' is not like dp=4"},
    {"an unknown op", "graph global\n%0 = relo()\n",
     "line 2, column 6: expected an op, found 'relo', which the op table does not have"},
    {"a number too many", "graph global\n\n  %1 = batch()\n",
     "line 3, column 3: expected %0: nodes are numbered in order"},
    {"an attribute missing", "graph global\n%0 = batch() name=\"x\" shape=[]\n",
     "line 2, column 23: expected attribute dtype= of batch, found 'shape=[]'"},
    {"an attribute of another kind", "graph global\n%0 = constant() value=x dtype=f32 : f32[]\n",
     "line 2, column 23: 'x' is not a number"},
    {"a type that is none", "graph global\n%0 = constant() value=1 dtype=f32 : f31[]\n",
     "line 2, column 37: unknown dtype 'f31'; known are f32, f64, bf16, f16, i32, i64, bool"},
    {"an operand that is not there", "graph global\n%0 = test_sink(%0) : ()\n",
     "line 2, column 1: expected values that are defined above, found %0"},
    {"a result that is not there",
     "graph global\n%0 = constant() value=1 dtype=f32 : f32[]\nmetric \"x\" = %0.1\n",
     "line 3, column 7: expected values that are defined above, found %0.1"},
    {"an unknown mark", "graph global\n%0 = constant() value=1 dtype=f32 : f32[] bwrd\n",
     "line 2, column 43: expected a mark: @block, fwd, bwd, upd, stage=, recompute=, name=, "
     "cotangent=, contribution=, like=, remat_of=, file:line, found 'bwrd'"},
    {"an output twice",
     "graph global\n%0 = constant() value=1 dtype=f32 : f32[]\nmetric \"x\" = %0\nmetric \"x\" = "
     "%0\n",
     "line 4, column 7: output 'x' is given twice"},
    {"an open quote", "graph global\n%0 = batch() name=\"x\n",
     "line 2, column 19: expected a closing quote before the line ends"},
    {"an open block", "graph global\nblock %0 in l.0 () {\n",
     "line 3, column 1: expected the } of the block, found the end of the line"},
    {"a block of nothing", "graph global\nblock %0 in l.0 () {\n}\n",
     "line 3, column 1: expected a node: the block is empty"},
    {"a repetition of nothing", "graph global\nblock %0 in l.0 () as %0\n",
     "line 2, column 23: expected the first node of an earlier block that has a body"},
    {"a state that begins as no number",
     "graph global\n%0 = state() path=\"w\" dtype=f32 shape=[] : f32[]\n"
     "state \"w\" = %0 parameter constant=nan\n",
     "line 3, column 6: expected a first value, found nan"},
    {"a closing brace too many", "graph global\n}\n",
     "line 2, column 1: expected a node, or the end of the text, found '}'"},
};

TEST(GraphText, ErrorsSayWhereAndWhatWasExpected) {
  for (const ErrorCase& c : kErrors) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(parse_error(c.text), text("graph text, ", c.says));
  }
}

TEST(GraphText, ARepetitionMustFit) {
  const std::string head =
      "graph global\n%0 = constant() value=1 dtype=f32 : f32[]\n"
      "block %1 in l.0 (%0) {\n%1 = test_add(%0, %0) : f32[]\nmetric \"l.0\" = %1\n}\n";
  EXPECT_EQ(parse_error(head + "block %2 in l.1 (%1) as %1\n"), "no error");
  EXPECT_EQ(parse_error(head + "block %2 in l.1 () as %1\n"),
            "graph text, line 7, column 23: expected 1 values in (), as block l.0 has, not 0");
  EXPECT_EQ(parse_error(head + "block %2 in l.1 (%9) as %1\n"),
            "graph text, line 7, column 25: expected values that are defined above, found %9");
  EXPECT_EQ(parse_error(head + "block %2 in l.0 (%1) as %1\n"),
            "graph text, line 7, column 25: output 'l.0' is given twice");
  EXPECT_EQ(
      parse_error("graph global\n%0 = constant() value=1 dtype=f32 : f32[]\nblock %1 in l.0 () {\n"
                  "%1 = test_add(%0, %0) : f32[]\n}\nblock %2 in l.1 () as %1\n"),
      "graph text, line 6, column 23: block l.0 mentions %0, which its first line does not list");
}

/// A sample with every construct of the grammar.
std::string sample() {
  Builder body;
  body.output(Output::Kind::Metric, "y", body.constant(0.5));
  Builder b(Form::Local, parse_mesh("dp=2 mb=2@time"));
  const Graph layers = layered_graph(2, 4, true);
  for (const Node& node : layers.nodes()) {
    Node copy = node;
    for (Result& result : copy.results)
      result = {{DType::F32, {1, 4}, {"p", 16}}, parse_placement("[dp,-]+mb@host"), {2, 4}};
    b.copy(copy, node.inputs);
  }
  Node fused;
  fused.op = &kTestBody;
  fused.attrs = {std::make_shared<const Graph>(body.finish()), std::int64_t{3}};
  fused.remat_of = 2;
  fused.where = {"a file.cpp", 3};
  b.copy(fused, {{1, 0}});
  b.add_state({"s",
               {1, 0},
               Role::Moment,
               {Init::Kind::Normal, 1},
               parse_placement("[dp,-]"),
               parse_placement("[-,-]")});
  b.output(Output::Kind::Accumulate, "g", Value(b, {5, 0}));
  return to_text(b.finish());
}

TEST(GraphText, ShortLinesDoNotMakeAHugeGraph) {
  constexpr int kNodes = 500, kBlocks = 2000;
  std::string line = "graph global\n%0 = batch() name=\"x\" dtype=f32 shape=[2] : f32[2]\n";
  line += "block %1 in layers.0 (%0) {\n";
  for (int i = 1; i <= kNodes; ++i)
    line += text("%", i, " = test_add(%0, %0) : f32[2] @layers.0\n");
  line += "}\n";
  for (int i = 1; i < kBlocks; ++i)
    line += text("block %", i * kNodes + 1, " in layers.", i, " (%0) as %1\n");
  const std::string error = parse_error(line);
  EXPECT_NE(error.find("repeated blocks take more memory than a graph may"), error.npos) << error;
}

TEST(GraphText, DamagedTextIsAnErrorOrAnotherGraph) {
  const std::string good = sample();
  int errors = 0, graphs = 0;
  const auto attempt = [&](const std::string& damaged) {
    try {
      const Graph graph = parsed(damaged);
      ++graphs;
      ASSERT_TRUE(parsed(to_text(graph)) == graph) << damaged;
    } catch (const Error& error) {
      ++errors;
      ASSERT_EQ(error.fault(), Fault::Usage) << error.what() << "\n" << damaged;
    }
  };
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string damaged = good;
    damaged.erase(i, 1);
    attempt(damaged);
    for (const char c :
         {'9', '%', '\n', static_cast<char>(good[i] ^ 1), static_cast<char>(good[i] ^ 64)}) {
      damaged = good;
      damaged[i] = c;
      attempt(damaged);
    }
    if (i % 8 == 0) attempt(good.substr(0, i));
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(errors, graphs);
  EXPECT_GT(graphs, 0);
}

TEST(GraphText, DeepNestingEndsInAnError) {
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += "graph global\n%0 = test_body() body={";
  EXPECT_NE(parse_error(deep).find("graphs in graphs are more than 16 deep"), std::string::npos);
}

}  // namespace
}  // namespace tessera
