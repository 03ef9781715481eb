#pragma once
/// A model that continues texts: the logits of their next tokens, with what was computed of earlier
/// tokens kept in caches, so that a token costs one token.

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/models/task.h"
#include "tessera/train/crew.h"

namespace tessera {

using Tokens = std::vector<std::int32_t>;

/// On the leader of a crew whose plan has the programs prefill and decode (and reorder).
class TextModel {
 public:
  TextModel(Crew& crew, const TextWriting& writing);

  /// How many texts it continues at a time: the rows of its programs.
  std::int64_t rows() const { return rows_; }

  /// Logits of the next token of each row. `texts` has one text per row, all of one length and not
  /// empty; a text begins with what it was in the call before, but for begin() and reorder(). Only
  /// what is new is computed. Of a text that is longer than the context the model sees the end: at
  /// least half of the context, so that what is dropped is dropped once in half a context.
  std::vector<std::vector<double>> next(std::span<const Tokens> texts);

  /// Other texts follow.
  void begin() { first_ = held_ = 0; }
  /// Row i continues what row rows[i] was.
  void reorder(std::span<const std::int32_t> rows);

 private:
  Crew& crew_;
  std::int64_t context_, rows_, most_;  // most tokens that are read at a time
  std::int64_t first_ = 0, held_ = 0;   // the caches hold tokens [first, first + held)
};

}  // namespace tessera
