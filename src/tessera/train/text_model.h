#pragma once
/// A model that continues texts: the logits of their next tokens, with what was computed of earlier
/// tokens, and of the sources that texts are written from, kept in caches, so that a token costs
/// one token.

#include <cstdint>
#include <span>
#include <vector>

#include "tessera/models/task.h"
#include "tessera/models/written_tokens.h"
#include "tessera/train/rank_group.h"

namespace tessera {

/// On the leader of a group whose plan has the programs of writing_programs().
class TextModel {
 public:
  TextModel(RankGroup& group, const TextWriting& writing);

  /// How many texts it continues at a time: the rows of its programs.
  std::int64_t rows() const { return rows_; }
  const TextWriting& writing() const { return writing_; }
  /// Most tokens that can be written behind so many: one that is written from a source cannot go
  /// beyond its context.
  std::int64_t most_behind(std::int64_t length) const;

  /// Other texts follow, whose first tokens come with next(). `sources`: of a task that has them,
  /// one for each row, with the end token. All caches become what they are in a new process.
  /// Errors: Fault::Usage: sources for a task without them, or none for one with them; another
  /// number than rows; one that is empty or longer than the task's.
  void begin(std::span<const Tokens> sources = {});

  /// Logits of the next token of each row. `texts` has one text per row, all of one length and not
  /// empty; a text begins with what it was in the call before, but for begin() and reorder(). Only
  /// what is new is computed. Of a text that is longer than the context the model sees the end: at
  /// least half of the context, so that what is dropped is dropped once in half a context.
  /// Errors: Fault::Usage: texts that are not as described; beyond the context, where there is a
  /// source. Fault::Numerics: a logit that is not finite.
  std::vector<std::vector<double>> next(std::span<const Tokens> texts);

  /// Row i continues what row rows[i] was. Errors: Fault::Usage: another number than rows; a row
  /// that is not there, or of another source.
  void reorder(std::span<const std::int32_t> rows);

 private:
  void require_texts(std::span<const Tokens> texts) const;
  /// Feeds the model the tokens [begin, begin + count) of all texts; the name of the program that
  /// did.
  const char* feed(std::span<const Tokens> texts, std::int64_t begin, std::int64_t count);

  RankGroup& group_;
  TextWriting writing_;
  std::int64_t rows_, most_;             // most tokens that are read at a time
  bool begun_ = false;                   // the caches have values of this model
  std::int64_t first_ = 0, held_ = 0;    // the caches hold tokens [first, first + held)
  std::vector<Tokens> sources_, texts_;  // of the last calls, by row
};

}  // namespace tessera
