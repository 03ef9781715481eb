/// Attention and its gradient, over blocks of keys where the scores would be large. Scores are
/// [b, g, r, s, t], in f32 whatever the operands are.

#include "tessera/ops/attention.h"

#include <algorithm>
#include <limits>

#include "tessera/hlo/op_call.h"
#include "tessera/hlo/ops/cudnn_attention.h"
#include "tessera/ops/attention_sight.h"

namespace tessera::hlo {

namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

/// How many keys a block has: all of them, where the scores are few; as many as a query sees, where
/// that is not less than makes sense.
std::int64_t keys_of_block(const Shape& q, std::int64_t keys, const Sight& sight,
                           const EmitOptions& options) {
  const std::int64_t rows = std::max<std::int64_t>(q.numel() / std::max<std::int64_t>(q[4], 1), 1);
  if (rows * keys <= options.most_scores) return keys;
  const std::int64_t fits = options.most_scores / rows / options.fewest_keys * options.fewest_keys;
  return std::min({keys, std::max(fits, options.fewest_keys),
                   std::max(sight.last - sight.first + 1, options.fewest_keys)});
}

/// What the forward and the backward op share.
class Heads {
 public:
  /// `first` is the operand q; `extras` is how many operands come before mask, slopes and step.
  Heads(Writing& w, int first, int extras)
      : q(w.in(first)),
        k(w.in(first + 1)),
        v(w.in(first + 2)),
        keys(k.shape()[1]),
        sight(sight_of(w.call)),
        per_block(keys_of_block(q.shape(), keys, sight, w.e.options)),
        queries(whole() ? q.shape()[1]
                        : std::min(q.shape()[1], per_block + sight.last - sight.first)),
        w_(w),
        code_(w.code),
        q_type_(w.operand(first)),
        k_type_(w.operand(first + 1)),
        cap_(w.call.number_or("cap", 0)) {
    const bool masked = w.call.flag("mask");
    if (masked) mask_ = w.in(extras);
    if (masked) ++extras;
    if (w.call.flag_or("slopes", false))
      slopes_ = code_.reshape(w.in(extras++), {1, q.shape()[2], q.shape()[3], 1, 1});
    if (w.call.number("dropout") > 0) {
      step_ = w.in(extras);
      key_ = w.e.key_of(w.node);
    }
  }

  const Value q, k, v;
  const std::int64_t keys;
  const Sight sight;
  const std::int64_t per_block;  // keys
  const std::int64_t queries;    // that see some of a block's keys: no more, wherever it lies

  /// [b, g, r, s, last]
  Shape rows(std::int64_t last) const { return rows_of(q.shape()[1], last); }
  std::int64_t blocks() const { return (keys + per_block - 1) / per_block; }
  bool whole() const { return blocks() == 1; }

  /// Keys, values or a mask with as many keys as the blocks have together.
  Value filled(const Value& x, int dim) const {
    return code_.pad(x, dim, 0, blocks() * per_block - keys);
  }
  /// The part of it that block `i`, an i64 scalar, has.
  Value part(const Value& x, int dim, const Value& i) const {
    if (whole()) return x;
    Shape shape = x.shape();
    shape[dim] = per_block;
    return code_.dynamic_slice(x, dim, i * static_cast<double>(per_block), shape);
  }

  /// The rows of queries that block `i` has to do with.
  Value query_part(const Value& x, int dim, const Value& i) const {
    if (queries == q.shape()[1]) return x;
    Shape shape = x.shape();
    shape[dim] = queries;
    return code_.dynamic_slice(x, dim, first_query(i), shape);
  }
  /// `all` with other such rows.
  Value with_query_part(const Value& all, const Value& part, int dim, const Value& i) const {
    return queries == q.shape()[1] ? part : code_.dynamic_update(all, part, dim, first_query(i));
  }

  /// Scaled and capped scores.
  Value scores(const Value& keys_of_block, const Value& i) const {
    const Value scaled = code_.einsum("b s g r e, b t g e -> b g r s t", query_part(q, 1, i),
                                      keys_of_block, Element::F32) *
                         w_.call.number("scale");
    return cap_ > 0 ? code_.unary("tanh", scaled / cap_) * cap_ : scaled;
  }
  /// With what they have by position in block `i`.
  Value sloped(const Value& scores, const Value& i) const {
    return slopes_ ? scores + *slopes_ * code_.convert(ahead(i), Element::F32) : scores;
  }
  /// The gradient of scores as that of what was capped.
  Value under_cap(const Value& gradient, const Value& scores) const {
    if (cap_ == 0) return gradient;
    const Value share = scores / cap_;
    return gradient * (1.0 - share * share);
  }

  /// Which scores of a block count; nothing where all do.
  std::optional<Value> seen(const Value& i) const {
    std::optional<Value> out;
    const auto also = [&](const Value& more) { out = out ? *out & more : more; };
    if (!sight.looks_ahead_far()) also(ahead(i) <= static_cast<double>(sight.last));
    if (!sight.looks_back_far()) also(ahead(i) >= static_cast<double>(sight.first));
    if (blocks() * per_block > keys) also(place(i) < static_cast<double>(keys));
    if (mask_) {
      const bool of_queries = mask_->ndim() == 3;
      const Value all = part(filled(*mask_, mask_->ndim() - 1), mask_->ndim() - 1, i),
                  mask = of_queries ? query_part(all, 1, i) : all;
      also(code_.reshape(mask, {mask.shape()[0], 1, 1, of_queries ? queries : 1, per_block}));
    }
    return out ? std::optional(code_.broadcast(*out, rows_of(queries, per_block))) : out;
  }

  /// What dropout multiplies the probabilities of a block with; nothing without dropout.
  std::optional<Value> kept(const Value& i) const {
    if (!step_) return std::nullopt;
    const double p = w_.call.number("dropout");
    Emitter::Counter counter{rows_of(queries, per_block), {}, {}};
    const auto add = [&](const Result& of, int dim) {
      counter.sizes.push_back(of.placement ? of.logical[dim] : of.type.shape[dim]);
      counter.offsets.push_back(w_.e.offset(of, dim));
    };
    add(q_type_, 0), add(q_type_, 2), add(q_type_, 3), add(q_type_, 1), add(k_type_, 1);
    if (queries < q.shape()[1]) counter.offsets[3] = counter.offsets[3] + first_query(i);
    counter.offsets.back() = counter.offsets.back() + first_key(i);
    counter.in_fours = per_block % 4 == 0 && counter.sizes.back() % 4 == 0 &&
                       w_.e.is_offset_multiple(k_type_, 1, 4);
    const Value unit = w_.e.random_unit(*key_, counter, *step_);
    return code_.select(unit >= p, code_.constant(1 / (1 - p), Element::F32), 0.0);
  }

 private:
  /// Of the block's keys on this rank.
  Value place(const Value& i) const {
    return code_.iota({per_block}, 0, Element::I64) + first_key(i);
  }
  /// By how much the positions of the block's keys are ahead of those of its queries: [queries,
  /// per_block].
  Value ahead(const Value& i) const {
    Value row = code_.iota({queries, 1}, 0, Element::I64) + w_.e.offset(q_type_, 1);
    if (queries < q.shape()[1]) row = row + first_query(i);
    return place(i) + w_.e.offset(k_type_, 1) - row;
  }
  /// The first of the queries that see the block's first key, or one before it where there are not
  /// enough behind it.
  Value first_query(const Value& i) const {
    const Value of_key = first_key(i) + w_.e.offset(k_type_, 1) - w_.e.offset(q_type_, 1) -
                         static_cast<double>(sight.last);
    return code_.binary("minimum", code_.binary("maximum", of_key, 0.0),
                        static_cast<double>(q.shape()[1] - queries));
  }
  Shape rows_of(std::int64_t rows, std::int64_t last) const {
    const Shape& size = q.shape();
    return {size[0], size[2], size[3], rows, last};
  }
  Value first_key(const Value& i) const { return i * static_cast<double>(per_block); }

  Writing& w_;
  Code& code_;
  const Result &q_type_, &k_type_;
  const double cap_;
  std::optional<Value> mask_, slopes_, step_, key_;
};

/// x in blocks: one after another where there are several.
Values over_blocks(Code& code, const Heads& h, const Values& start,
                   const std::function<Values(const Value& i, const Values&)>& body) {
  const Value zero = code.constant(0, Element::I64);
  if (h.whole()) return body(zero, start);
  Values with_count = {zero};
  with_count.insert(with_count.end(), start.begin(), start.end());
  Values ends = code.loop(
      with_count, [&](const Values& v) { return v[0] < static_cast<double>(h.blocks()); },
      [&](const Values& v) {
        Values next = {v[0] + 1.0};
        for (const Value& each : body(v[0], {v.begin() + 1, v.end()})) next.push_back(each);
        return next;
      });
  ends.erase(ends.begin());
  return ends;
}

/// A row's largest score so far, the sum of its exponentials, and its sum of values, which shrink
/// when a larger score comes.
void write_attention(Writing& w) {
  if (cudnn_takes(w, 0)) return write_cudnn_attention(w);
  Code& code = w.code;
  const Heads h(w, 0, 3);
  const Value keys = h.filled(h.k, 1), values = h.filled(h.v, 1);
  const Values start = {code.constant(kNothing, Element::F32, h.rows(1)),
                        code.constant(0, Element::F32, h.rows(1)),
                        code.constant(0, Element::F32, h.rows(h.v.shape()[3]))};
  const auto finite = [&](const Value& top) {  // of a row that sees no key: 0
    return code.select(eq(top, kNothing), 0.0, top);
  };
  const Values ends = over_blocks(code, h, start, [&](const Value& i, const Values& so_far) {
    const Values before = {h.query_part(so_far[0], 3, i), h.query_part(so_far[1], 3, i),
                           h.query_part(so_far[2], 3, i)};
    Value scores = h.sloped(h.scores(h.part(keys, 1, i), i), i);
    if (const auto seen = h.seen(i)) scores = code.select(*seen, scores, kNothing);
    const Value highest = code.reduce(scores, {4}, Monoid::Max, true);
    const Value top = h.whole() ? highest : code.binary("maximum", before[0], highest);
    const Value p = code.exp(scores - finite(top));
    const Value total = code.sum(p, {4}, true);
    const auto kept = h.kept(i);
    const Value used = code.convert(kept ? p * *kept : p, h.v.element());
    const Value y =
        code.einsum("b g r s t, b t g e -> b g r s e", used, h.part(values, 1, i), Element::F32);
    if (h.whole()) return Values{top, total, y};
    const Value shrink = code.exp(before[0] - finite(top));
    return Values{h.with_query_part(so_far[0], top, 3, i),
                  h.with_query_part(so_far[1], before[1] * shrink + total, 3, i),
                  h.with_query_part(so_far[2], before[2] * shrink + y, 3, i)};
  });
  const Value total = ends[1], safe = code.select(eq(total, 0.0), 1.0, total);
  w.out(code.convert(code.transpose(ends[2] / safe, {0, 3, 1, 2, 4}), w.result_element(0)));
  const Value logsumexp = code.log(total) + finite(ends[0]);
  w.out(code.convert(code.reshape(logsumexp, w.result(1).type.shape), w.result_element(1)));
}

/// (dy, q, k, v, y, logsumexp[, dlogsumexp][, mask][, slopes][, step]) -> (dq, dk, dv):
/// probabilities are made again.
void write_attention_grad(Writing& w) {
  if (cudnn_takes(w, 1)) return write_cudnn_attention_grad(w);
  Code& code = w.code;
  const bool of_logsumexp = w.call.flag_or("of_logsumexp", false);
  const Heads h(w, 1, 6 + of_logsumexp);
  const Value &dy = w.in(0), &y = w.in(4), logsumexp = code.column(code.wide(w.in(5)));
  const Value keys = h.filled(h.k, 1), values = h.filled(h.v, 1);
  const Value of_row = code.sum(code.wide(dy) * code.wide(y), {4});
  Value row_sum = code.column(code.transpose(of_row, {0, 2, 3, 1}));
  if (of_logsumexp) row_sum = row_sum - code.column(code.wide(w.in(6)));
  const Values start = {code.constant(0, Element::F32, h.q.shape()),
                        code.constant(0, Element::F32, keys.shape()),
                        code.constant(0, Element::F32, values.shape())};
  const Values ends = over_blocks(code, h, start, [&](const Value& i, const Values& so_far) {
    const Value k = h.part(keys, 1, i), v = h.part(values, 1, i), q = h.query_part(h.q, 1, i),
                of_y = h.query_part(dy, 1, i);
    const Value scores = h.scores(k, i);
    Value p = code.exp(h.sloped(scores, i) - h.query_part(logsumexp, 3, i));
    if (const auto seen = h.seen(i)) p = code.select(*seen, p, 0.0);
    const Value dp = code.einsum("b s g r e, b t g e -> b g r s t", of_y, v, Element::F32);
    const auto kept = h.kept(i);
    const Value dropped = kept ? p * *kept : p;
    const Value of_score = p * ((kept ? dp * *kept : dp) - h.query_part(row_sum, 3, i));
    const Value slope = h.under_cap(of_score, scores) * w.call.number("scale");
    const Value ds = code.convert(slope, h.q.element()), pk = code.convert(dropped, h.q.element());
    const Value dq = code.einsum("b g r s t, b t g e -> b s g r e", ds, k, Element::F32),
                dk = code.einsum("b s g r e, b g r s t -> b t g e", q, ds, Element::F32),
                dv = code.einsum("b s g r e, b g r s t -> b t g e", of_y, pk, Element::F32);
    if (h.whole()) return Values{dq, dk, dv};
    const Value place = i * static_cast<double>(h.per_block);
    const Value queries = h.query_part(so_far[0], 1, i) + dq;
    return Values{h.with_query_part(so_far[0], queries, 1, i),
                  code.dynamic_update(so_far[1], dk, 1, place),
                  code.dynamic_update(so_far[2], dv, 1, place)};
  });
  w.out(code.convert(ends[0], w.result_element(0)));
  w.out(code.convert(code.slice(ends[1], 1, 0, h.keys), w.result_element(1)));
  w.out(code.convert(code.slice(ends[2], 1, 0, h.keys), w.result_element(2)));
}

/// (y, logsumexp, y_b, logsumexp_b) -> (y, logsumexp).
void write_merge_attention(Writing& w) {
  Code& code = w.code;
  const Value a = w.in(1), b = w.in(3);
  const Value top = code.binary("maximum", a, b), none = eq(top, kNothing);
  const Value safe = code.select(none, 0.0, top);  // of a row that sees no key
  const Value of_a = code.exp(a - safe), of_b = code.exp(b - safe), total = of_a + of_b;
  const Value divisor = code.select(none, 1.0, total);
  const auto weighted = [&](const Value& y, const Value& share) {
    const Value rows = code.transpose(share / divisor, {0, 3, 1, 2});  // [b, s, g, r]
    Shape shape = y.shape();
    shape[4] = 1;
    return code.wide(y) * code.broadcast(code.reshape(rows, shape), y.shape());
  };
  w.out(weighted(w.in(0), of_a) + weighted(w.in(2), of_b));
  w.out(code.log(total) + safe);
}

constinit const Emission kAttentions[] = {
    {&kAttention, write_attention, "", Numbers::AsTheyAre, Source::Formula},
    {&kAttentionGrad, write_attention_grad, "", Numbers::AsTheyAre, Source::Formula},
    {&kMergeAttention, write_merge_attention, "", Numbers::AsTheyAre, Source::Formula},
};

}  // namespace

std::span<const Emission> attention_emissions() { return kAttentions; }

}  // namespace tessera::hlo
