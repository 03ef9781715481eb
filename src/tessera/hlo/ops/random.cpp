/// Random numbers by counter: the same bits as on every device.

#include "tessera/ops/random.h"

#include "tessera/hlo/op_call.h"

namespace tessera::hlo {

namespace {

void write_dropout(Writing& w) {
  const double p = w.call.number("p");
  const Emitter::Counter counter = w.e.counter_of(w.result(0));
  const Value unit = w.e.random_unit(w.e.key_of(w.node), counter, w.in(1));
  w.out(w.code.select(unit >= p, w.in(0) / (1 - p), 0.0));
}

void write_uniform(Writing& w) {
  w.out(w.e.random_unit(w.e.key_of(w.node), w.e.counter_of(w.result(0)), w.in(0)));
}

void write_normal(Writing& w) {
  w.out(w.e.random_normal(w.e.key_of(w.node), w.e.counter_of(w.result(0)), w.in(0)));
}

/// Drawn again, with the next key, wherever it lies beyond 2, until none does.
void write_truncated_normal(Writing& w) {
  const Value first = w.e.key_of(w.node), step = w.in(0);
  const Emitter::Counter counter = w.e.counter_of(w.result(0));
  std::vector<std::int64_t> dims;
  for (int d = 0; d < counter.shape.ndim(); ++d) dims.push_back(d);
  const auto beyond = [&](const Value& x) { return w.code.unary("abs", x) > 2.0; };
  const Values ends = w.code.loop(
      {first, w.e.random_normal(first, counter, step)},
      [&](const Values& v) { return w.code.reduce(beyond(v[1]), dims, Monoid::Max, false); },
      [&](const Values& v) {
        const Value key = v[0] + w.code.integer(1, Element::U64);
        return Values{key,
                      w.code.select(beyond(v[1]), w.e.random_normal(key, counter, step), v[1])};
      });
  w.out(ends[1]);
}

constinit const Emission kRandom[] = {
    {&kDropout, write_dropout, "", Numbers::Wide, Source::Formula},
    {&kRandomUniform, write_uniform, "", Numbers::AsTheyAre, Source::Formula},
    {&kRandomNormal, write_normal, "", Numbers::AsTheyAre, Source::Formula},
    {&kRandomTruncatedNormal, write_truncated_normal, "", Numbers::AsTheyAre, Source::Formula},
};

}  // namespace

std::span<const Emission> random_emissions() { return kRandom; }

}  // namespace tessera::hlo
