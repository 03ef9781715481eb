/// Of Emitter: random numbers.

#include "tessera/hlo/emitter.h"

namespace tessera::hlo {

/// Of each element, or of each block of four; ui64.
Value Emitter::element_index(const Counter& counter, bool of_blocks) {
  Shape shape = counter.shape;
  const int last = shape.ndim() - 1;
  if (of_blocks) shape[last] /= 4;
  Value out = code.constant(0, Element::I64, shape);
  for (int d = 0; d <= last; ++d) {
    const bool blocks = of_blocks && d == last;
    const auto i = static_cast<std::size_t>(d);
    const Value begin =
        blocks ? code.binary("divide", counter.offsets[i], 4.0) : counter.offsets[i];
    const auto size = static_cast<double>(blocks ? counter.sizes[i] / 4 : counter.sizes[i]);
    out = out * size + (code.iota(shape, d, Element::I64) + begin);
  }
  return code.convert(out, Element::U64);
}

Emitter::Words Emitter::random_words(const Value& key, const Counter& counter, const Value& step) {
  const auto low = [&](const Value& x) { return code.convert(x, Element::U32); };
  const auto by = [&](const Value& x, std::uint64_t number) {
    return code.convert(x, Element::U64) * code.integer(number, Element::U64);
  };
  const Value index = element_index(counter, counter.in_fours);
  const Value block = counter.in_fours ? index : index >> 2.0;
  const Value time = code.broadcast(code.convert(step, Element::U64), index.shape());
  Values w = {low(block), low(block >> 32.0), low(time), low(time >> 32.0)};
  Value k0 = low(key), k1 = low(key >> 32.0);
  for (int round = 0; round < 10; ++round) {
    const Value p0 = by(w[0], 0xD2511F53), p1 = by(w[2], 0xCD9E8D57);
    w = {low(p1 >> 32.0) ^ w[1] ^ k0, low(p1), low(p0 >> 32.0) ^ w[3] ^ k1, low(p0)};
    k0 = k0 + code.integer(0x9E3779B9, Element::U32);
    k1 = k1 + code.integer(0xBB67AE85, Element::U32);
  }
  if (counter.in_fours) return {w, {}};
  return {w, low(index & code.integer(3, Element::U64))};
}

/// Four values of each block, one after another.
Value Emitter::interleaved(const Values& four, const Shape& shape) {
  Values columns;
  for (const Value& each : four) columns.push_back(code.column(each));
  return code.reshape(code.concat(columns, shape.ndim()), shape);
}

Value Emitter::random_bits(const Value& key, const Counter& counter, const Value& step) {
  const auto [w, own] = random_words(key, counter, step);
  if (counter.in_fours) return interleaved(w, counter.shape);
  const Value later = code.select(eq(own, 2.0), w[2], w[3]);
  return code.select(eq(own, 0.0), w[0], code.select(eq(own, 1.0), w[1], later));
}

Value Emitter::random_unit(const Value& key, const Counter& counter, const Value& step) {
  const Value bits = random_bits(key, counter, step) >> 8.0;
  return code.convert(bits, Element::F32) * 0x1p-24;
}

Value Emitter::random_normal(const Value& key, const Counter& counter, const Value& step) {
  constexpr double kTurn = 6.283185307179586;
  const auto [w, own] = random_words(key, counter, step);
  const auto number = [&](const Value& x) { return code.convert(x, Element::F64); };
  const auto radius = [&](const Value& first) {
    return code.sqrt(code.log((number(first) + 1.0) * 0x1p-32) * -2.0);
  };
  const auto angle = [&](const Value& second) { return number(second) * 0x1p-32 * kTurn; };
  if (counter.in_fours) {
    Values out;
    for (const std::size_t i : {std::size_t{0}, std::size_t{2}}) {
      const Value r = radius(w[i]), a = angle(w[i + 1]);
      out.push_back(r * code.unary("cosine", a));
      out.push_back(r * code.unary("sine", a));
    }
    return code.convert(interleaved(out, counter.shape), Element::F32);
  }
  const Value is_first = own < 2.0;
  const Value r = radius(code.select(is_first, w[0], w[2])),
              a = angle(code.select(is_first, w[1], w[3]));
  const Value is_even = eq(own & code.integer(1, Element::U32), 0.0);
  const Value turned = code.select(is_even, code.unary("cosine", a), code.unary("sine", a));
  return code.convert(r * turned, Element::F32);
}

}  // namespace tessera::hlo
