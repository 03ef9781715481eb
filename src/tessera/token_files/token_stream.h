#pragma once
/// A tokenised corpus and its split.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tessera/tensor/ignored_label.h"

namespace tessera {

/// Of `count` tokens, rows or pictures those that train, the first floor((1 - held_out) * count).
std::int64_t count_to_train(std::int64_t count, double held_out);

/// Token ids in order: the first part to train on, the tail held out.
class TokenStream {
 public:
  static constexpr double kHeldOut = 0.1;

  /// No tokens, of data that has another form.
  static TokenStream none();
  /// All is held out, as a text of its own. Errors: Fault::Data: no tokens.
  static TokenStream held_out_alone(std::vector<std::int32_t> ids);

  /// The train part is the first count_to_train(n, held_out) tokens: 1,003,854 of tiny
  /// Shakespeare's 1,115,394. Errors: Fault::Data: no tokens. Fault::Usage: held_out not in [0, 1).
  explicit TokenStream(std::vector<std::int32_t> ids, double held_out = kHeldOut);
  /// All of one text trains, another one is held out. Errors: Fault::Data: no tokens to train on.
  TokenStream(std::vector<std::int32_t> train, std::span<const std::int32_t> held_out);

  /// The held-out part is a text of its own, not the rest of the one that trains.
  bool held_out_apart() const { return held_out_apart_; }

  std::span<const std::int32_t> all() const { return ids_; }
  std::span<const std::int32_t> train() const { return all().first(num_train_); }
  std::span<const std::int32_t> held_out() const { return all().subspan(num_train_); }

 private:
  std::vector<std::int32_t> ids_;
  std::size_t num_train_ = 0;
  bool held_out_apart_ = false;
};

/// Kernels read ids outside a table as zeros: whoever takes ids from outside holds them against the
/// table first.
/// Errors: Fault::Data: an id below 0 or not below `vocabulary`; `where` names what holds it.
void require_ids(std::span<const std::int32_t> ids, std::int64_t vocabulary,
                 std::string_view where);

/// Writes the `ids` of `context` tokens from `begin` and their `labels`, which are the tokens one
/// later. Positions beyond the last token with a label have id 0 and kIgnoredLabel.
void copy_window(std::span<const std::int32_t> tokens, std::int64_t begin, std::int64_t context,
                 std::int32_t* ids, std::int32_t* labels);

/// Consecutive windows that score each token of a held-out part once, its first excepted, which has
/// no context.
class EvalWindows {
 public:
  /// Errors: Fault::Data: fewer than two tokens.
  EvalWindows(std::span<const std::int32_t> tokens, std::int64_t context);

  /// ceil(num_labels / context): the last window may be partial.
  std::int64_t count() const { return (num_labels() + context_ - 1) / context_; }
  /// Positions that are scored in all windows together: the divisor of the mean loss.
  std::int64_t num_labels() const { return static_cast<std::int64_t>(tokens_.size()) - 1; }

  /// Fills ids and labels [count, context] with windows [first, first + count). Windows beyond the
  /// last are padding without labels, so a batch of fixed size may run over the end. Returns how
  /// many labels they hold.
  std::int64_t fill(std::int64_t first, std::int64_t count, std::span<std::int32_t> ids,
                    std::span<std::int32_t> labels) const;

 private:
  std::span<const std::int32_t> tokens_;
  std::int64_t context_;
};

}  // namespace tessera
