#include "tessera/train/text_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/base/counted.h"
#include "tessera/train/programs.h"

namespace tessera {

namespace {

/// [rows, tokens at a time]
Shape shape_of_ids(const Plan& plan, const char* program) {
  for (const NamedTensor& input : plan.program(program).batch) {
    if (input.name == "ids") return input.logical;
  }
  fail(Fault::Internal, "program ", program, " has no ids");
}

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// The row's logits, all of them finite. `length`: tokens of its text.
std::vector<double> finite_row(const float* values, std::int64_t width, std::int64_t row,
                               std::int64_t length) {
  for (std::int64_t id = 0; id < width; ++id) {
    if (!std::isfinite(values[id]))
      fail(Fault::Numerics, "the logits of token ", length + 1, " of text ", row + 1,
           " are not finite: id ", id, " has ", values[id],
           "; the weights are damaged, or overflow f32: give an earlier checkpoint, or train again "
           "with a lower learning rate or with clipping");
  }
  return {values, values + width};
}

}  // namespace

TextModel::TextModel(RankGroup& group, const TextWriting& writing)
    : group_(group),
      writing_(writing),
      rows_(shape_of_ids(group.plan(), kPrefillProgram)[0]),
      most_(shape_of_ids(group.plan(), kPrefillProgram)[1]) {}

std::int64_t TextModel::most_behind(std::int64_t length) const {
  if (writing_.source == 0) return std::numeric_limits<std::int64_t>::max();
  return std::max<std::int64_t>(writing_.context - length + 1, 0);
}

void TextModel::begin(std::span<const Tokens> sources) {
  if (writing_.source == 0)
    require(sources.empty(), sources.size(),
            " sources are given, but the model takes none; give none");
  if (writing_.source > 0)
    require(std::ssize(sources) == rows_, sources.size(), " sources are given for ", rows_,
            " rows; give one for each");
  for (std::size_t row = 0; row < sources.size(); ++row)
    require(!sources[row].empty() && std::ssize(sources[row]) <= writing_.source, "the source of ",
            "row ", row, " has ", counted(std::ssize(sources[row]), "token"), "; give 1 to ",
            writing_.source);
  first_ = held_ = 0;
  sources_.assign(sources.begin(), sources.end());
  texts_.clear();
  group_.run(kBeginProgram);
  begun_ = true;
  if (sources_.empty()) return;
  group_.run(kReadSourceProgram, [&](BatchInputs& batch) {
    const std::span<std::int32_t> ids = batch.fill<std::int32_t>("source");
    std::ranges::fill(ids, writing_.pad);
    for (std::int64_t row = 0; row < rows_; ++row)
      std::ranges::copy(sources_[index(row)], ids.begin() + row * writing_.source);
  });
}

void TextModel::require_texts(std::span<const Tokens> texts) const {
  require(std::ssize(texts) == rows_, texts.size(), " texts are given for ", rows_,
          " rows; give one for each");
  const std::int64_t length = std::ssize(texts[0]);
  require(length > 0, "the texts are empty; give at least one token of each");
  for (std::size_t row = 0; row < texts.size(); ++row) {
    require(std::ssize(texts[row]) == length, "text ", row, " has ",
            counted(std::ssize(texts[row]), "token"), ", text 0 has ", length,
            "; texts continued together must have one length");
    if (texts_.empty()) continue;
    const std::int64_t before = std::ssize(texts_[row]);
    require(length > before, "text ", row, " has ", counted(length, "token"), ", but had ", before,
            " in the previous call; give it with new tokens, or begin again");
    require(std::equal(texts_[row].begin(), texts_[row].end(), texts[row].begin()), "text ", row,
            " does not begin with its tokens of the previous call; begin again for another text");
  }
  require(writing_.source == 0 || length <= writing_.context, "the texts have ",
          counted(length, "token"), ", the model's context is ", writing_.context,
          "; a text written from a source cannot exceed it");
}

const char* TextModel::feed(std::span<const Tokens> texts, std::int64_t begin, std::int64_t count) {
  const char* const program = count == 1 ? kDecodeProgram : kPrefillProgram;
  group_.run(program, [&](BatchInputs& batch) {
    const std::span<std::int32_t> ids = batch.fill<std::int32_t>("ids");
    const std::int64_t width = std::ssize(ids) / rows_;
    std::ranges::fill(ids, 0);  // what follows the last token is seen by none of these
    for (std::int64_t row = 0; row < rows_; ++row)
      std::copy_n(texts[index(row)].begin() + begin, count, ids.begin() + row * width);
    batch.fill<std::int32_t>("position")[0] = static_cast<std::int32_t>(held_);
    batch.fill<std::int32_t>("wanted")[0] = static_cast<std::int32_t>(count - 1);
  });
  return program;
}

std::vector<std::vector<double>> TextModel::next(std::span<const Tokens> texts) {
  if (!begun_) begin();
  require_texts(texts);
  texts_.resize(texts.size());
  for (std::size_t row = 0; row < texts.size(); ++row)
    texts_[row].insert(texts_[row].end(), texts[row].begin() + std::ssize(texts_[row]),
                       texts[row].end());
  const std::int64_t length = std::ssize(texts[0]);
  if (length - first_ > writing_.context) {
    const bool began = held_ > 0;
    first_ = length - (began ? std::max<std::int64_t>(writing_.context / 2, 1) : writing_.context);
    held_ = 0;
  }
  const char* program = nullptr;
  while (first_ + held_ < length) {
    const std::int64_t begin = first_ + held_, count = std::min(length - begin, most_);
    program = feed(texts, begin, count);
    held_ += count;
  }
  const HostTensor logits = group_.engine().metric(program, "logits");
  const std::int64_t width = logits.numel() / rows_;
  std::vector<std::vector<double>> out;
  for (std::int64_t row = 0; row < rows_; ++row)
    out.push_back(finite_row(logits.data<float>() + row * width, width, row, length));
  return out;
}

void TextModel::reorder(std::span<const std::int32_t> rows) {
  require(std::ssize(rows) == rows_, rows.size(), " rows are named for ", rows_,
          "; name one for each");
  bool moves = false;
  for (std::int64_t i = 0; i < rows_; ++i) {
    const std::int32_t from = rows[index(i)];
    require(from >= 0 && from < rows_, "row ", i, " is to continue row ", from,
            "; the rows are 0 to ", rows_ - 1);
    require(sources_.empty() || sources_[index(from)] == sources_[index(i)], "row ", i,
            " is to continue row ", from, ", which has another source");
    moves = moves || from != i;
  }
  if (!moves) return;
  const std::vector<Tokens> before = texts_;
  for (std::size_t i = 0; i < texts_.size(); ++i) texts_[i] = before[index(rows[i])];
  group_.run(kReorderProgram, [&](BatchInputs& batch) { batch.set<std::int32_t>("rows", rows); });
}

}  // namespace tessera
