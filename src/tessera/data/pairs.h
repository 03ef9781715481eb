#pragma once
/// Pairs of texts, as translations: a line each, source and target with a tab between them, or two
/// columns of a table.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tessera/token_files/data_split.h"

namespace tessera {

struct Dataset;

/// How a pair becomes tokens. `pad`, `start` and `end` are ids that no text has.
struct PairOptions {
  std::int64_t source = 0, target = 0;  // tokens of each, the first and the end included
  std::int32_t pad = 0, start = 0, end = 0;
  std::optional<std::int32_t> first = std::nullopt;  // before each source and target; none: nothing
};

/// The pairs of one part of a dataset, by number, in the order of their lines or rows. The dataset
/// must outlive them. All functions may be called from any thread.
///
/// Tokens of a tokenizer may go beyond tabs and lines: with one, the files are read again, and each
/// side of a pair is turned into tokens by itself.
///
/// A line belongs to the part in which it begins. Pairs of which a side does not fit are left out
/// and counted: a side that is cut would teach a model to end in the middle.
class Pairs {
 public:
  /// Errors: Fault::Data: a line without a tab or with several, which is named; no pair that fits.
  Pairs(const Dataset& data, DataPart part, const PairOptions& options);

  std::int64_t size() const { return static_cast<std::int64_t>(pairs_.size()); }
  std::int64_t left_out() const { return left_out_; }

  /// Tokens of the longer side, the first and the end included; and of both.
  std::int64_t length(std::int64_t i) const;
  std::int64_t tokens(std::int64_t i) const;

  /// Writes pair `i`: the source and the end; as `ids` the start and the target, as `labels` the
  /// target and the end. What is left is padding, whose labels do not count: rows are as wide as
  /// the options say, or narrower, but for no pair too narrow. A pair below 0 is padding alone.
  void fill(std::int64_t i, std::span<std::int32_t> source, std::span<std::int32_t> ids,
            std::span<std::int32_t> labels) const;

 private:
  struct Pair {
    std::span<const std::int32_t> source, target;
  };
  /// How many tokens stand around a text: the end, and the first where there is one.
  std::int64_t around() const { return options_.first ? 2 : 1; }
  void add_rows(const Dataset& data, DataPart part);
  void add_lines(const Dataset& data, DataPart part);
  void add(const Pair& pair);
  void add_line(std::span<const std::int32_t> line, std::int32_t tab,
                const std::function<std::string()>& name);

  PairOptions options_;
  std::vector<std::int32_t> own_;  // tokens of a tokenizer, to which pairs_ refer
  std::vector<Pair> pairs_;
  std::int64_t left_out_ = 0;
};

}  // namespace tessera
