/// Updates of parameters and moments: nothing changes where the step is not `ok`.

#include "tessera/base/index.h"
#include "tessera/hlo/op_call.h"
#include "tessera/ops/optimizer_ops.h"

namespace tessera::hlo {

namespace {

struct NewMoments {
  Value m, v;
};

NewMoments moments(Writing& w, const Value& g) {
  const double beta1 = w.call.number("beta1"), beta2 = w.call.number("beta2");
  return {w.in(1) * beta1 + g * (1 - beta1), w.in(2) * beta2 + g * g * (1 - beta2)};
}

/// m / correction1 / (sqrt(v / correction2) + eps)
Value adam_step(Writing& w, const NewMoments& n, const Value& correction1,
                const Value& correction2) {
  return n.m / correction1 / (w.code.sqrt(n.v / correction2) + w.call.number("eps"));
}

/// The new values, or the old ones; and the copy of the first, where the node makes one.
void finish(Writing& w, const Value& ok, const Values& after, const std::vector<Term>& before) {
  for (std::size_t i = 0; i < after.size(); ++i) w.out(w.code.select(ok, after[i], before[i]));
  if (w.node.results.size() == after.size()) return;
  const Value rounded = w.code.convert(w.outs()[0], w.result_element(0));
  w.out(w.code.convert(rounded, w.result_element(static_cast<int>(after.size()))));
}

void write_adam(Writing& w) {
  const Value &p = w.in(0), scaled = w.in(3) * w.in(5);
  const double decay = w.call.number("weight_decay");
  const bool decoupled = w.call.flag("decoupled");
  const NewMoments n = moments(w, decoupled ? scaled : scaled + p * decay);
  const Value bare = adam_step(w, n, w.in(6), w.in(7));
  const Value step = decoupled ? bare + p * decay : bare;
  finish(w, w.in(8), {p - w.in(4) * step, n.m, n.v}, {p, w.in(1), w.in(2)});
}

void write_lamb_direction(Writing& w) {
  const NewMoments n = moments(w, w.in(3) * w.in(4));
  const Value u = adam_step(w, n, w.in(5), w.in(6)) + w.in(0) * w.call.number("weight_decay");
  finish(w, w.in(7), {u, n.m, n.v}, {0.0, w.in(1), w.in(2)});
}

void write_sgd(Writing& w) {
  const double momentum = w.call.number("momentum");
  const Value &p = w.in(0), g = w.in(2) * w.in(4) + p * w.call.number("weight_decay");
  const Value u = w.in(1) * momentum + g;
  const Value step = w.call.flag("nesterov") ? g + u * momentum : u;
  finish(w, w.in(5), {p - w.in(3) * step, u}, {p, w.in(1)});
}

constinit const Emission kOptimizer[] = {
    {&kAdam, write_adam, "", Numbers::Wide, Source::Formula},
    {&kLambDirection, write_lamb_direction, "", Numbers::Wide, Source::Formula},
    {&kSgd, write_sgd, "", Numbers::Wide, Source::Formula},
};

}  // namespace

std::span<const Emission> optimizer_emissions() { return kOptimizer; }

}  // namespace tessera::hlo
