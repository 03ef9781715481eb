#include "search/random_steps.h"

#include "ops/harness.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/matmul.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/ops/softmax.h"
#include "tessera/passes/grad.h"
#include "tessera/passes/simplify.h"

namespace tessera::test {

namespace {

class StepMaker {
 public:
  explicit StepMaker(std::mt19937& random) : random_(random) {}

  Graph around(const Case& c, int ops) {
    std::vector<Value> ins;
    const bool has_gradient = is_differentiable(c);
    for (std::size_t i = 0; i < c.ins.size(); ++i) {
      const TensorType& type = c.ins[i].type;
      const bool variable = has_gradient && is_variable(c, static_cast<int>(i)) && pick(2) == 0;
      ins.push_back(variable ? parameter(type) : builder_.batch(text("in", i), type));
    }
    const std::vector<Value> outs = builder_.add_all(*c.op, ins, c.attrs);
    Value out = outs[0];
    if (out.dtype() != DType::F32) out = cast(out, DType::F32);
    while (forward_ops(builder_.so_far()) + 3 <= ops) out = further(out);
    return finish(out);
  }

  Graph chain(int ops) {
    constexpr std::int64_t kRows = 48, kWidth = 16;
    values_.push_back(builder_.batch("x", {DType::F32, {kRows, kWidth}, {}}));
    for (int i = 1; i < ops; ++i) {
      const Value from = values_[values_.size() - 1 - at_most(2, values_.size())];
      Value made = further(from);
      if (made.ndim() != 2) made = from * from;
      values_.push_back(made);
    }
    // What nobody has read yet joins the loss.
    Value out = values_.back();
    return finish(out);
  }

 private:
  unsigned pick(unsigned n) { return static_cast<unsigned>(random_() % n); }
  std::size_t at_most(unsigned n, std::size_t size) {
    return std::min<std::size_t>(pick(n + 1), size - 1);
  }

  Value parameter(const TensorType& type) {
    const Value out = builder_.state(text("w", parameters_.size()), type, Role::Parameter,
                                     {Init::Kind::Normal, 0.1});
    parameters_.push_back(out);
    return out;
  }

  /// One more op on a float.
  Value further(Value x) {
    const int last = x.ndim() - 1;
    switch (pick(9)) {
      case 0:
        if (x.ndim() >= 1) return x + parameter({DType::F32, {x.shape()[last]}, {}});
        return tanh(x);
      case 1: return x * x;
      case 2:
      case 3:
        if (x.ndim() == 2) {
          const std::int64_t width = 8 * (1 + pick(3));
          return matmul(x, parameter({DType::F32, {x.shape()[1], width}, {}}));
        }
        return sigmoid(x);
      case 4:
        if (x.ndim() >= 1) return softmax(x, -1);
        return relu(x);
      case 5:
        if (x.ndim() == 2) return transpose(x, {1, 0});
        return relu(x);
      case 6:
        if (!values_.empty()) {
          const Value other = values_[pick(static_cast<unsigned>(values_.size()))];
          if (other.type() == x.type()) return x + other;
        }
        return x + x;
      case 7:
        if (x.ndim() == 2) return x - sum(x, {1}, KeepDim::Yes);
        return tanh(x);
      default: return relu(x);
    }
  }

  Graph finish(Value out) {
    const Value loss = out.ndim() == 0 ? out * out : sum_all(out);
    if (!parameters_.empty()) {
      const std::vector<Value> found = gradients(loss, parameters_);
      for (std::size_t i = 0; i < found.size(); ++i)
        builder_.output(Output::Kind::Metric, text("gradient ", i), found[i]);
    }
    builder_.output(Output::Kind::Metric, "loss", loss);
    return simplify(builder_.finish());
  }

  std::mt19937& random_;
  Builder builder_;
  std::vector<Value> parameters_, values_;
};

}  // namespace

bool is_called(const OpDef& op) {
  return !op.traits.leaf && !op.traits.inserted && !op.traits.exchanges && &op != &kGradient;
}

Graph step_around(const Case& c, int ops, std::mt19937& random) {
  return StepMaker(random).around(c, ops);
}

Graph random_step(int ops, std::mt19937& random) { return StepMaker(random).chain(ops); }

int forward_ops(const Graph& graph) {
  int out = 0;
  for (const Node& node : graph.nodes())
    out += node.phase == Phase::Forward && !node.op->traits.leaf;
  return out;
}

}  // namespace tessera::test
