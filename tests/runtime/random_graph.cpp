#include "runtime/random_graph.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "runtime/random_pool.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/optimizer_ops.h"
#include "tessera/ops/reduce.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/ops/softmax.h"
#include "tessera/ops/sum_squares.h"
#include "tessera/passes/grad.h"

namespace tessera::fuzz {

namespace {

// Streams of one seed: the parts of a graph draw their own numbers, so that fewer ops leave the
// other parts as they are.
enum Stream : std::uint64_t { kOps, kTail, kSize, kStates, kBatches, kDisturbance };

void first_inputs(Pool& p) {
  p.step = p.builder.state("data.samples", {DType::I64, {}, {}}, Role::Counter, {});
  for (std::int64_t count = 1 + p.random.below(3); count > 0; --count) {
    Shape shape{kRows};
    for (std::int64_t dims = p.random.below(4); dims > 0; --dims) {
      const std::int64_t size = p.dim_size();
      if (shape.numel() * size <= p.max_elements / 2) shape.push_back(size);
    }
    p.batch_floats(shape);
  }
  if (p.random.chance(0.5)) p.batch_ids({kRows, p.dim_size()}, 9);
  if (p.random.chance(0.3)) p.batch_bits({kRows, p.dim_size()});
}

void one_op(Pool& p) {
  if (p.random.chance(0.1)) return row_of_an_op(p);
  const bool simple = p.random.chance(0.6);
  const std::span<const WeightedFamily> families = simple ? simple_families() : model_families();
  std::int64_t all = 0;
  for (const WeightedFamily& family : families) all += family.weight;
  std::int64_t at = p.random.below(all);
  for (const WeightedFamily& family : families) {
    if ((at -= family.weight) < 0) return family.add(p);
  }
}

/// Two or three blocks of the same ops, each on the result of the one before.
void repeated_blocks(Pool& p) {
  const auto start = p.pick_float();
  if (!start) return;
  const std::int64_t count = 2 + p.random.below(2), ops = 2 + p.random.below(5);
  const Random random = p.random;
  const std::size_t window = p.window;
  const int names = p.names;
  Item x = *start;
  for (std::int64_t i = 0; i < count; ++i) {
    const Scope scope(p.builder, text("layers.", names + i));
    p.random = random;
    p.names = 0;
    p.items.push_back(x);
    p.window = p.items.size() - 1;
    for (std::int64_t op = 0; op < ops; ++op) one_op(p);
    const auto last = p.pick([&](const Item& y) {
      const auto rows = broadcast_rows(x, y);
      return y.is(DType::F32) && rows && rows->rows_dim == x.rows_dim && y.shape() == x.shape();
    });
    Item next = x;
    next.value = tanh(x.value + (last ? *last : x).value);
    if (last) p.meets(next, *last);
    if (p.random.chance(0.3)) p.builder.set_name(next.value, "residual");
    const std::size_t known = p.items.size();
    p.push(next, {&x, last ? &*last : &x});
    if (p.items.size() == known) break;  // too large: no next block reads it
    x = p.items.back();
  }
  p.window = window;
  p.names = names + static_cast<int>(count);
}

/// A scalar that adds over the rows of the batch.
Value loss_term(Pool& p, const Item& x) {
  const bool rows_last = x.ndim() == 0 || x.rows_dim == x.ndim() - 1;
  switch (p.random.below(rows_last ? 3 : 4)) {
    case 0: return sum_all(x.value);
    case 1: return sum_squares(x.value);
    case 2: return sum_all(silu(x.value));
    default: {
      Item row = x;
      row.value = max(x.value, -1);
      const Item labels = p.ids_like(row, x.shape().back());
      return sum_all(cross_entropy(x.value, labels.value).loss);
    }
  }
}

Value loss_of(Pool& p) {
  const Scope scope(p.builder, "loss");
  std::optional<Value> loss;
  const auto fits = [](const Item& i) { return i.is(DType::F32) && !i.gradient_stops; };
  for (std::int64_t terms = 1 + p.random.below(3); terms > 0; --terms) {
    const auto x = p.pick(fits);
    if (!x) continue;
    const Value term = loss_term(p, *x) * (1.0 / static_cast<double>(x->shape().numel()));
    loss = loss ? *loss + term : term;
  }
  if (!loss) loss = sum_all(p.items[0].value);
  if (p.random.chance(0.3)) {  // a mean over labels that count, known before the first micro-batch
    const Item labels = p.batch_ids({kRows, 3}, 5);
    const Value none = p.builder.constant(-1, DType::I32);
    const Value count = sum_all(cast(not_equal(labels.value, none), DType::F32));
    loss = *loss / maximum(count, p.builder.constant(1.0));
  }
  if (p.random.chance(0.03)) {
    p.mixes_rows = true;
    loss = tanh(*loss);
  }
  return *loss;
}

/// What all updates share.
struct Shared {
  Value lr, scale, ok, one;
};

void update_parameter(Pool& p, Value w, Value g, const Shared& shared) {
  Builder& b = p.builder;
  const std::string path = std::get<std::string>(b.node(w).attrs[0]);
  const auto moment = [&](std::string_view name) {
    return b.state(text(path, ".", name), w.type(), Role::Moment, {});
  };
  switch (p.random.below(8)) {
    case 0: {  // LAMB, of which the step is as long as the parameter says
      const Value m = moment("m"), v = moment("v");
      const LambResult r = lamb_direction(w, m, v, g, shared.scale, shared.one, shared.one,
                                          shared.ok, {0.9, 0.95, 1e-2, 0.1});
      const Value ratio = sqrt(sum_squares(w)) / (sqrt(sum_squares(r.direction)) + 1e-2);
      b.next(w, select(shared.ok, w - r.direction * (shared.lr * ratio), w));
      b.next(m, r.m);
      b.next(v, r.v);
      return;
    }
    case 1: {
      const Value u = moment("momentum");
      const SgdResult r = sgd(w, u, g, shared.lr, shared.scale, shared.ok, 0.9,
                              p.random.chance(0.5) ? 0.01 : 0, p.random.chance(0.5));
      b.next(w, r.parameter);
      b.next(u, r.momentum);
      return;
    }
    case 2:
    case 3:
    case 4: {
      const Value m = moment("m"), v = moment("v");
      // A large eps: a step is not the sign of rounding noise.
      const AdamOptions options{0.9, 0.95, 1e-2, p.random.chance(0.5) ? 0.1 : 0,
                                p.random.chance(0.5)};
      const AdamResult r =
          adam(w, m, v, g, shared.lr, shared.scale, shared.one, shared.one, shared.ok, options);
      b.next(w, r.parameter);
      b.next(m, r.m);
      b.next(v, r.v);
      return;
    }
    case 5: {  // an expression, and an average that reads the old or the new value
      const Value next = w - g * shared.lr, ema = moment("ema");
      b.next(w, next);
      b.next(ema, ema * 0.9 + (p.random.chance(0.5) ? w : next) * 0.1);
      return;
    }
    case 6:  // with a part of itself
      b.next(w, select(shared.ok, w * 0.99 - tanh(g) * 0.1, w));
      return;
    default: return;  // stays
  }
}

/// Metrics of all kinds: values of the step, views of them, inputs.
void metrics(Pool& p, const std::vector<Value>& weights, const std::vector<Value>& grads) {
  Builder& b = p.builder;
  int count = 0;
  const auto put = [&](Value v) { b.output(Output::Kind::Metric, text("metric", count++), v); };
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Value w = weights[i], g = grads[i];
    if (p.random.chance(0.3)) put(g);
    if (p.random.chance(0.1)) put(w);
    if (p.random.chance(0.1)) put(reshape(w, {w.type().numel()}));
    if (p.random.chance(0.15) && w.ndim() > 1 && w.shape()[0] > 1)  // a view of a view
      put(reshape(slice(w, 0, 0, 1), {w.type().numel() / w.shape()[0]}));
    if (p.random.chance(0.1)) put(tanh(w));
    if (p.random.chance(0.1) && g.ndim() == 2) put(transpose(g, {1, 0}));
    if (p.random.chance(0.1) && g.ndim() > 0 && g.shape()[0] > 1)
      put(slice(reshape(g, g.shape()), 0, 1, g.shape()[0] - 1));
    if (p.random.chance(0.15)) put(sum_squares(g));
  }
  if (p.random.chance(0.1)) put(b.constant(2.5));
  if (p.random.chance(0.15)) put(p.step);
  if (p.random.chance(0.04)) {
    const auto x = p.pick([](const Item& i) { return i.rows_dim >= 0; });
    if (x) put(x->value), p.mixes_rows = true;
  }
}

/// States that do not belong to parameters.
void odd_states(Pool& p) {
  Builder& b = p.builder;
  const TensorType type{DType::F32, {3, 4}, {}};
  const auto state = [&](std::string_view name) {
    return b.state(text("odd.", name), type, Role::Moment, {});
  };
  if (p.random.chance(0.1)) {
    const Value x = state("turned");
    b.next(x, reshape(transpose(x, {1, 0}), type.shape));
  }
  if (p.random.chance(0.1)) {
    const Value x = state("set");
    b.next(x, broadcast_to(b.constant(0.25), type.shape));
  }
  if (p.random.chance(0.1)) {
    const Value x = state("kept");
    b.next(x, x);
  }
  if (p.random.chance(0.1)) {
    const Value x = state("read"), y = state("copy");
    b.next(y, x * 0.5 + y * 0.5);
    b.next(x, x + 1.0);
  }
  if (p.random.chance(0.1)) {
    const Value x = state("twice"), y = state("twin");
    const Value z = x * 0.5 + 0.1;
    b.next(x, z);
    b.next(y, z);
  }
}

}  // namespace

int random_size(std::uint64_t seed) {
  Random random(seed, kSize);
  return static_cast<int>(2 + random.below(random.chance(0.3) ? 60 : 25));
}

RandomGraph random_graph(std::uint64_t seed, int ops) {
  Builder b;
  Pool p(b, seed);
  p.random = Random(seed, kOps);
  first_inputs(p);
  for (int i = 0; i < ops; ++i) p.random.chance(0.06) ? repeated_blocks(p) : one_op(p);

  p.random = Random(seed, kTail);
  const Value loss = loss_of(p);
  std::vector<Value> weights;
  for (const State& state : b.so_far().states()) {
    if (state.role == Role::Parameter && p.random.chance(0.9)) weights.push_back({b, state.value});
  }
  if (p.random.chance(0.3)) std::reverse(weights.begin(), weights.end());
  if (!weights.empty() && p.random.chance(0.2)) {  // a view of a view of a state
    const Value w = weights[0];
    if (w.ndim() > 1)
      b.output(Output::Kind::Metric, "early",
               reshape(slice(w, 0, 0, 1), {w.type().numel() / w.shape()[0]}));
  }
  const std::vector<Value> grads = gradients(loss, weights);

  b.set_mark({"", Phase::Update, -1, Where::here()});
  Shared shared;
  shared.one = b.constant(1.0);
  shared.lr = cast(p.step, DType::F32) * 0.001 + 0.01;
  shared.scale = shared.one;
  shared.ok = is_finite(loss);
  if (!grads.empty() && p.random.chance(0.4)) {
    std::vector<Value> squares;
    for (const Value& g : grads) squares.push_back(sum_squares(g));
    shared.scale = minimum(shared.one, 0.5 / (sqrt(add_n(squares)) + 1e-3));
  }
  for (std::size_t i = 0; i < weights.size(); ++i)
    update_parameter(p, weights[i], grads[i], shared);
  odd_states(p);
  b.next(p.step, p.step + static_cast<double>(kRows));
  b.output(Output::Kind::Metric, "loss", loss);
  metrics(p, weights, grads);
  return {b.finish(), p.mixes_rows};
}

Bindings random_states(const Graph& graph, std::uint64_t seed) {
  Random random(seed, kStates);
  Bindings out;
  for (const State& state : graph.states()) {
    HostTensor value(graph.type(state.value));
    for (std::int64_t i = 0; i < value.numel(); ++i) {
      if (state.role == Role::Counter) continue;
      const double x = random.between(-1, 1) + random.between(-1, 1);
      value.set(i, state.path.ends_with(".v") ? x * x * 0.01 : x * 0.7);
    }
    out.states.emplace(state.path, value);
  }
  return out;
}

void random_batch(const Graph& graph, std::uint64_t seed, int step, Bindings& into) {
  Random random(seed, kBatches + (static_cast<std::uint64_t>(step) << 8));
  for (const Node& node : graph.nodes()) {
    if (node.op != &kBatch) continue;
    const std::string& name = std::get<std::string>(node.attrs[0]);
    HostTensor value(node.type());
    std::int64_t high = 6;  // ids of some rows lie outside
    if (const std::size_t dot = name.find('.'); dot != std::string::npos)
      std::from_chars(name.data() + dot + 1, name.data() + name.size(), high);
    for (std::int64_t i = 0; i < value.numel(); ++i) {
      const double x = random.between(-1, 1) + random.between(-1, 1);
      switch (value.dtype()) {
        case DType::F32: value.set(i, x * 1.2); break;
        case DType::Bool: value.set(i, x > -0.4 ? 1 : 0); break;
        default: value.set(i, static_cast<double>(random.below(high + 2) - 1)); break;
      }
    }
    into.batch[name] = value;
  }
}

Bindings disturbed(const Bindings& inputs, std::uint64_t seed) {
  Random random(seed, kDisturbance);
  Bindings out;
  const auto disturb = [&](const auto& from, auto& to) {
    for (const auto& [name, tensor] : from) {
      HostTensor value = tensor.clone();
      for (std::int64_t i = 0; i < value.numel() && is_float(value.dtype()); ++i)
        value.set(i, value.at(i) * (1 + random.between(-1, 1) * 1e-6));
      to.emplace(name, value);
    }
  };
  disturb(inputs.batch, out.batch);
  disturb(inputs.states, out.states);
  return out;
}

}  // namespace tessera::fuzz
