#include "tessera/train/text_model.h"

#include <algorithm>

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

}  // namespace

TextModel::TextModel(Crew& crew, const TextWriting& writing)
    : crew_(crew),
      context_(writing.context),
      rows_(shape_of_ids(crew.plan(), kPrefillProgram)[0]),
      most_(shape_of_ids(crew.plan(), kPrefillProgram)[1]) {}

std::vector<std::vector<double>> TextModel::next(std::span<const Tokens> texts) {
  check(std::ssize(texts) == rows_, texts.size(), " texts for ", rows_, " rows");
  const std::int64_t length = std::ssize(texts[0]);
  if (length - first_ > context_) {
    const bool began = held_ > 0;
    first_ = length - (began ? std::max<std::int64_t>(context_ / 2, 1) : context_);
    held_ = 0;
  }
  const char* program = nullptr;
  while (first_ + held_ < length) {
    const std::int64_t begin = first_ + held_, rest = length - begin, count = std::min(rest, most_);
    program = count == 1 ? kDecodeProgram : kPrefillProgram;
    crew_.run(program, [&](BatchInputs& batch) {
      const std::span<std::int32_t> ids = batch.fill<std::int32_t>("ids");
      const std::int64_t width = std::ssize(ids) / rows_;
      std::ranges::fill(ids, 0);  // what follows the last token is seen by none of these
      for (std::int64_t row = 0; row < rows_; ++row)
        std::copy_n(texts[static_cast<std::size_t>(row)].begin() + begin, count,
                    ids.begin() + row * width);
      batch.fill<std::int32_t>("position")[0] = static_cast<std::int32_t>(held_);
      batch.fill<std::int32_t>("wanted")[0] = static_cast<std::int32_t>(count - 1);
    });
    held_ += count;
  }
  check(program != nullptr, "no token is new");
  const HostTensor logits = crew_.executor().metric(program, "logits");
  const std::int64_t width = logits.numel() / rows_;
  std::vector<std::vector<double>> out;
  for (std::int64_t row = 0; row < rows_; ++row) {
    const float* values = logits.data<float>() + row * width;
    out.emplace_back(values, values + width);
  }
  return out;
}

void TextModel::reorder(std::span<const std::int32_t> rows) {
  for (std::int64_t i = 0; i < rows_; ++i) {
    if (rows[static_cast<std::size_t>(i)] == i) continue;
    return crew_.run(kReorderProgram,
                     [&](BatchInputs& batch) { batch.set<std::int32_t>("rows", rows); });
  }
}

}  // namespace tessera
