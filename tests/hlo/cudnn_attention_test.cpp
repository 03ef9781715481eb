/// Attention by cuDNN's kernels: which cases are handed to them, and how. There is no GPU here:
/// in place of a kernel runs a function that computes what the kernel is documented to.

#include <gtest/gtest.h>

#include <algorithm>

#include "hlo/local_node.h"
#include "hlo/model_runs.h"
#include "hlo/on_plugin.h"
#include "tessera/hlo/code.h"
#include "tessera/ir/builder.h"
#include "tessera/ops/attention.h"

namespace tessera::test {

namespace {

using hlo::Element;

hlo::EmitOptions with_cudnn() {
  hlo::EmitOptions out;
  out.cudnn_attention = true;
  return out;
}

int count_of(std::string_view word, std::string_view text) {
  int out = 0;
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + word.size()))
    ++out;
  return out;
}

/// A call of a kernel in a module, on one line.
struct KernelCall {
  std::string line;  // "%5:3 = stablehlo.custom_call @NAME(%1, %2, %3) {...} : (...) -> (...)"

  bool backward() const { return line.find("Backward(") != std::string::npos; }
  std::string between(std::string_view before, std::string_view after) const {
    const std::size_t begin = line.find(before) + before.size();
    return line.substr(begin, line.find(after, begin) - begin);
  }
  double scale() const { return std::stod(between("fmha_scale\\\":", ",")); }
  bool causal() const { return between("mask_type\\\":\\\"", "\\") == "CAUSAL"; }
  std::string types() const { return line.substr(line.find("} : (") + 2); }
  /// The same call of a function of the module.
  std::string of_function() const {
    return text(line.substr(0, line.find('=')), "= func.call @kernel",
                line.substr(line.find('('), line.find(") {") + 1 - line.find('(')), types());
  }
};

KernelCall call_in(const std::string& module) {
  const std::size_t at = module.find("stablehlo.custom_call @__cudnn$fmhaSoftmax"),
                    begin = module.rfind('\n', at) + 1;
  return {module.substr(begin, module.find('\n', at) - begin)};
}

/// What the kernels are documented to compute of q [b, s, n, e], k and v [b, t, g, e], logsumexp
/// [b, n, s], dy and y [b, s, n, e]; query head i sees key head i / (n / g). Operands in that order,
/// results [b, heads, s, e].
class Kernel {
 public:
  Kernel(const KernelCall& call, DType dtype, const Shape& q, const Shape& k)
      : backward_(call.backward()),
        code_(functions_),
        element_(hlo::element_of(dtype)),
        q_(q),
        k_(k) {
    const Shape statistics = {q[0], q[2], q[1]};
    const hlo::Value q_in = argument(q), k_in = argument(k), v_in = argument(k);
    const hlo::Value queries = code_.wide(q_in), keys = repeated(k_in), values = repeated(v_in);
    hlo::Value scores =
        code_.einsum("b s n e, b t n e -> b n s t", queries, keys, Element::F32) * call.scale();
    if (call.causal()) {
      const Shape size = scores.shape();
      scores = code_.select(code_.iota(size, 3, Element::I64) <= code_.iota(size, 2, Element::I64),
                            scores, -1e30);
    }
    if (!backward_) {
      const hlo::Value top = code_.reduce(scores, {3}, Monoid::Max, true);
      const hlo::Value p = code_.exp(scores - top), total = code_.sum(p, {3}, true);
      out(code_.einsum("b n s t, b t n e -> b n s e", p / total, values, Element::F32), element_);
      out(code_.reshape(code_.log(total) + top, statistics), Element::F32);
    } else {
      const hlo::Value logsumexp = argument(statistics, Element::F32);
      const hlo::Value dy = code_.wide(argument(q)), y = code_.wide(argument(q));
      const hlo::Value p = code_.exp(scores - code_.column(logsumexp));
      const hlo::Value dp = code_.einsum("b s n e, b t n e -> b n s t", dy, values, Element::F32);
      const hlo::Value row = code_.column(code_.transpose(code_.sum(dy * y, {3}), {0, 2, 1}));
      const hlo::Value ds = p * (dp - row) * call.scale();
      out(code_.einsum("b n s t, b t n e -> b n s e", ds, keys, Element::F32), element_);
      out(grouped(code_.einsum("b n s t, b s n e -> b n t e", ds, queries, Element::F32)),
          element_);
      out(grouped(code_.einsum("b n s t, b s n e -> b n t e", p, dy, Element::F32)), element_);
    }
    outs_.push_back(code_.line("stablehlo.constant dense<> : tensor<0xui8>", {Element::U8, {0}}));
  }

  std::string text() const {
    std::vector<std::string> heads;
    std::vector<hlo::Type> types;
    for (const hlo::Value& each : ins_) heads.push_back(tessera::text(each, ": ", each.type()));
    for (const hlo::Value& each : outs_) types.push_back(each.type());
    return tessera::text("func.func private @kernel(", join(heads), ") -> (", join(types), ") {\n",
                         code_.written(), "  return ", join(outs_), " : ", join(types), "\n}\n");
  }

 private:
  hlo::Value argument(const Shape& shape) { return argument(shape, element_); }
  hlo::Value argument(const Shape& shape, Element element) {
    ins_.emplace_back(code_, tessera::text("%a", ins_.size()), hlo::Type{element, shape});
    return ins_.back();
  }
  void out(const hlo::Value& value, Element element) {
    outs_.push_back(code_.convert(value, element));
  }
  /// [b, t, g, e] as [b, t, n, e].
  hlo::Value repeated(const hlo::Value& x) {
    const Shape apart = {k_[0], k_[1], k_[2], 1, k_[3]},
                all = {k_[0], k_[1], k_[2], q_[2] / k_[2], k_[3]};
    const hlo::Value wide = code_.broadcast(code_.reshape(code_.wide(x), apart), all);
    return code_.reshape(wide, {k_[0], k_[1], q_[2], k_[3]});
  }
  /// Its gradient: [b, n, t, e] as [b, g, t, e].
  hlo::Value grouped(const hlo::Value& x) {
    return code_.sum(code_.reshape(x, {k_[0], k_[2], q_[2] / k_[2], k_[1], k_[3]}), {2});
  }

  bool backward_;
  hlo::Functions functions_;
  hlo::Code code_;
  Element element_;
  Shape q_, k_;
  hlo::Values ins_, outs_;
};

struct HeadsCase {
  const OpDef* op;
  bool causal;
  DType dtype;
  std::int64_t queries, keys, window = 0;
  double cap = 0;
  bool slopes = false;
};
constexpr HeadsCase kHeads[] = {
    {&kAttention, true, DType::BF16, 6, 6},
    {&kAttention, false, DType::F16, 5, 7},
    {&kAttentionGrad, true, DType::F16, 6, 6},
    {&kAttentionGrad, false, DType::BF16, 5, 7},
};

LocalNode node_of(const HeadsCase& c) {
  const Shape q = {2, c.queries, 2, 3, 8}, k = {2, c.keys, 2, 8};
  Builder builder;
  std::vector<Value> ins;
  const auto add = [&](const Shape& shape, DType dtype) {
    ins.push_back(builder.batch(text("in", ins.size()), {dtype, shape, {}}));
  };
  const bool grad = c.op == &kAttentionGrad;
  if (grad) add(q, c.dtype);
  add(q, c.dtype), add(k, c.dtype), add(k, c.dtype);
  if (grad) add(q, c.dtype), add({2, 2, 3, c.queries}, DType::F32);
  if (c.slopes) add({2, 3}, DType::F32);
  const NodeId id =
      builder
          .add_all(*c.op, ins,
                   {c.causal, 0.3, 0.0, false, std::string(), c.window, c.cap, c.slopes})[0]
          .id()
          .node;
  return node_alone(builder.finish(), id);
}

}  // namespace

/// In place of the kernel runs what it is documented to compute: all that surrounds it is right.
TEST(CudnnAttention, IsCalledAsDocumented) {
  if (cpu_plugin() == nullptr) GTEST_SKIP() << kNoPlugin;
  for (const HeadsCase& c : kHeads) {
    SCOPED_TRACE(text(c.op->name, " ", c.dtype, " ", c.causal ? "causal" : "full"));
    LocalNode node = node_of(c);
    fill_operands(node, 1);
    hlo::Module module = hlo::node_module(*node.graph, node.id(), with_cudnn());
    const KernelCall call = call_in(module.text);
    ASSERT_EQ(call.backward(), c.op == &kAttentionGrad) << module.text;
    EXPECT_EQ(call.causal(), c.causal);
    EXPECT_EQ(count_of(text("\\\"", c.dtype == DType::F16 ? "F16" : "BF16", "\\\""), call.line), 1);
    EXPECT_EQ(count_of(R"(\"dimensions\":[\"2\",\"6\",)", call.line), 1) << call.line;
    const Kernel kernel(call, c.dtype, {2, c.queries, 6, 8}, {2, c.keys, 2, 8});
    module.text.replace(module.text.find(call.line), call.line.size(), call.of_function());
    module.text.insert(module.text.find("func.func"), kernel.text());
    const Distance d = distance(node, OnPlugin(module).run(node.ins), reference_results(node));
    EXPECT_EQ(d.wrong, "");
    EXPECT_LE(d.worst, d.bound);
  }
}

TEST(CudnnAttention, HasNoWindowNoCapAndNoSlopes) {
  const auto kernels = [](const HeadsCase& c) {
    const LocalNode node = node_of(c);
    return count_of("__cudnn", hlo::node_module(*node.graph, node.id(), with_cudnn()).text);
  };
  for (const HeadsCase& c : kHeads) {
    HeadsCase near = c, capped = c, sloped = c;
    near.window = 4, capped.cap = 30, sloped.slopes = true;
    EXPECT_EQ(kernels(c), 1);
    EXPECT_EQ(kernels(near), 0);
    EXPECT_EQ(kernels(capped), 0);
    EXPECT_EQ(kernels(sloped), 0);
  }
}

/// The rest is computed by other ops.
TEST(CudnnAttention, TakesSomeCases) {
  struct Row {
    const char* why;
    ModelRun run;
    bool taken;
  };
  constexpr Row kRows[] = {
      {"causal", {"gpt2", "--heads 2 --dropout 0 --bf16"}, true},
      {"full", {"vit", "--heads 2 --dropout 0 --fp16"}, true},
      {"grouped heads on two ranks",
       {"llama",
        "--heads 4 --kv-heads 2 --width 32 --dropout 0 --bf16 --devices 2 "
        "--tensor-model-parallel-size 2"},
       true},
      {"in f32", {"gpt2", "--heads 2 --dropout 0"}, false},
      {"heads of 4", {"gpt2", "--heads 4 --dropout 0 --bf16"}, false},
      {"heads of 136", {"gpt2", "--heads 1 --width 136 --dropout 0 --bf16"}, false},
      {"dropout", {"gpt2", "--heads 2 --bf16"}, false},
      {"causal, and queries begin at another place on each rank",
       {"gpt2",
        "--heads 2 --dropout 0 --bf16 --devices 2 --context-parallel-size 2 --cp-comm-type p2p"},
       false},
      {"all tokens of a head on each rank",
       {"gpt2",
        "--heads 2 --dropout 0 --bf16 --devices 2 --context-parallel-size 2 --cp-comm-type a2a"},
       true},
      {"a mask", {"bert", "--heads 2 --dropout 0 --bf16"}, false},
  };
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.why);
    const std::vector<Program> programs = row.run.programs();
    const auto training = std::ranges::find_if(programs, trains);
    ASSERT_TRUE(training != programs.end());
    int attentions = 0;
    for (const Region& region : training->regions) {
      for (const Node& node : region.graph.nodes())
        attentions += node.op == &kAttention || node.op == &kAttentionGrad;
    }
    EXPECT_GE(attentions, 4);  // of two layers
    hlo::EmitOptions options = with_cudnn();
    options.lines_of_call = 0;
    options.bytes_of_call = 1'000'000;
    const std::string with = hlo::whole_module("train", *training, options).text;
    EXPECT_EQ(count_of("@__cudnn$fmhaSoftmax", with), row.taken ? attentions : 0);
    options.cudnn_attention = false;
    const std::string without = hlo::whole_module("train", *training, options).text;
    EXPECT_EQ(count_of("@__cudnn$fmhaSoftmax", without), 0);
  }
}

}  // namespace tessera::test
