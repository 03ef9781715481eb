#include <algorithm>
#include <array>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/part_order.h"
#include "tessera/data/question_rows.h"
#include "tessera/tensor/ignored_label.h"

namespace tessera {

namespace {

const EncodedQuestions::Context& context_of(const EncodedQuestions& questions,
                                            const EncodedQuestions::Entry& entry) {
  return questions.contexts[static_cast<std::size_t>(entry.question.context)];
}

/// Where the second text begins in a sample whose first has so many tokens.
std::int64_t second_begin(const TextFrame& frame, std::int64_t first) {
  std::int64_t out = 0;
  for (const FramePart& part : frame.pair) {
    if (part.text == 1) break;
    out += part.text == 0 ? first : 1;
  }
  return out;
}

class QuestionSamples final : public Samples {
 public:
  QuestionSamples(const Dataset& data, DataPart part, const QuestionSamplesOptions& options)
      : questions_(*data.questions()),
        options_(options),
        windows_(question_windows(*data.questions(), part, options)),
        order_(part, std::ssize(windows_), options.seed, options.most) {
    const bool trains = part == DataPart::Train;
    if (windows_.empty())
      fail(Fault::Data, "the ", trains ? "training" : "held-out", " part of ",
           name_of(questions_.files), " has no question; give more questions",
           trains ? "" : ", or hold out more of them");
  }

  std::int64_t size() const override { return order_.size(); }

  void fill(std::int64_t first, std::int64_t count, BatchInputs& batch) const override {
    const std::span<std::int32_t> ids = batch.fill_with<std::int32_t>("ids", options_.pad),
                                  mask = batch.fill_with<std::int32_t>("mask", 0),
                                  start = batch.fill_with<std::int32_t>("start", kIgnoredLabel),
                                  end = batch.fill_with<std::int32_t>("end", kIgnoredLabel);
    std::span<std::int32_t> types;
    if (options_.types) types = batch.fill_with<std::int32_t>("types", 0);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t item = order_.item(first + i);
      if (item < 0) break;
      const QuestionWindow& window = windows_[static_cast<std::size_t>(item)];
      const FramedTexts sample = sample_of(window);
      const auto at = static_cast<std::size_t>(i * options_.context);
      std::ranges::copy(sample.ids, ids.subspan(at).begin());
      if (options_.types) std::ranges::copy(sample.types, types.subspan(at).begin());
      std::ranges::fill(mask.subspan(at, sample.ids.size()), 1);
      const TokenRange answer = answer_in(questions_, window);
      start[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(answer.first);
      end[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(answer.last);
    }
  }

 private:
  FramedTexts sample_of(const QuestionWindow& window) const {
    const EncodedQuestions::Entry& entry = questions_.all[static_cast<std::size_t>(window.entry)];
    const std::span<const std::int32_t> context = context_of(questions_, entry).tokens.ids;
    const std::array texts = {std::span<const std::int32_t>(entry.ids),
                              context.subspan(static_cast<std::size_t>(window.first),
                                              static_cast<std::size_t>(window.tokens))};
    return framed(options_.frame, texts, options_.context);
  }

  const EncodedQuestions& questions_;
  QuestionSamplesOptions options_;
  std::vector<QuestionWindow> windows_;
  PartOrder order_;
};

}  // namespace

std::vector<QuestionWindow> question_windows(const EncodedQuestions& questions, DataPart part,
                                             const QuestionSamplesOptions& options) {
  const std::int64_t begin = part == DataPart::Train ? 0 : questions.train,
                     end = part == DataPart::Train ? questions.train : std::ssize(questions.all);
  std::vector<QuestionWindow> out;
  for (std::int64_t number = begin; number < end; ++number) {
    const EncodedQuestions::Entry& entry = questions.all[static_cast<std::size_t>(number)];
    const std::int64_t own = std::ssize(entry.ids), around = options.frame.around(2),
                       room = options.context - own - around,
                       tokens = std::ssize(context_of(questions, entry).tokens.ids);
    if (room < 1 || (tokens > room && room <= options.doc_stride))
      fail(Fault::Data, "the question at ", entry.question.place, " has ", own,
           " tokens, leaving room for ", std::max<std::int64_t>(room, 0), " of its text's ", tokens,
           " in a context of ", options.context, ", and doc-stride is ", options.doc_stride,
           "; give a context of ", own + around + options.doc_stride + 1, " or more",
           options.doc_stride > 0 ? ", or a shorter doc-stride" : "");
    for (std::int64_t first = 0;; first += room - options.doc_stride) {
      const std::int64_t count = std::min(room, tokens - first);
      out.push_back({number, first, count, second_begin(options.frame, own)});
      if (first + count == tokens) break;
    }
  }
  return out;
}

TokenRange answer_in(const EncodedQuestions& questions, const QuestionWindow& window) {
  const TokenRange answer = questions.all[static_cast<std::size_t>(window.entry)].answer;
  if (answer.none() || answer.first < window.first || answer.last >= window.first + window.tokens)
    return {0, 0};
  const std::int64_t shift = window.at - window.first;
  return {answer.first + shift, answer.last + shift};
}

std::unique_ptr<Samples> question_samples(const Dataset& data, DataPart part,
                                          const QuestionSamplesOptions& options) {
  return std::make_unique<QuestionSamples>(data, part, options);
}

std::int64_t longest_question_sample(const Dataset& data, const TextFrame& frame) {
  std::int64_t out = 0;
  for (const EncodedQuestions::Entry& entry : data.questions()->all)
    out = std::max(out, frame.around(2) + std::ssize(entry.ids) +
                            std::ssize(context_of(*data.questions(), entry).tokens.ids));
  return out;
}

}  // namespace tessera
