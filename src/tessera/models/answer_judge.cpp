#include <algorithm>
#include <limits>
#include <numeric>

#include "tessera/base/text.h"
#include "tessera/data/answer_scores.h"
#include "tessera/data/dataset.h"
#include "tessera/models/question_answering.h"

namespace tessera {

namespace {

/// Positions of the greatest logits, the greatest first.
std::vector<std::int64_t> best_ends(const float* logits, std::int64_t count) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), 0);
  const std::int64_t kept = std::min(count, kBestEnds);
  std::partial_sort(out.begin(), out.begin() + kept, out.end(),
                    [&](std::int64_t a, std::int64_t b) {
                      return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
                    });
  out.resize(static_cast<std::size_t>(kept));
  return out;
}

/// Tokens of a frame behind the text that answers a question.
std::int64_t tokens_behind_text(const TextFrame& frame) {
  return std::ranges::find(frame.pair.rbegin(), frame.pair.rend(), 1, &FramePart::text) -
         frame.pair.rbegin();
}

class AnswerJudge final : public Judge {
 public:
  AnswerJudge(const Dataset& data, const QuestionSamplesOptions& options, std::int64_t most_tokens)
      : questions_(*data.questions()),
        labelled_(!data.unlabelled),
        windows_(question_windows(*data.questions(), DataPart::Valid, options)),
        behind_(tokens_behind_text(options.frame)),
        most_tokens_(most_tokens) {}

  void keep_probabilities() override { keeps_ = true; }

  void add(std::int64_t first, std::int64_t count, const Predictions& predictions) override {
    const HostTensor &starts = predictions.at("start"), &ends = predictions.at("end");
    const std::int64_t context = starts.shape()[1];
    check(first == seen_, "predictions from window ", first, " on, behind ", seen_);
    for (std::int64_t i = 0; i < count; ++i)
      add_window(windows_[static_cast<std::size_t>(first + i)], starts.data<float>() + i * context,
                 ends.data<float>() + i * context, context);
    seen_ += count;
  }

  NamedMeans scores() const override {
    if (!labelled_) return {};
    std::vector<std::string> predictions;
    std::vector<std::vector<std::string>> answers;
    for (std::size_t i = 0; i < found_.size(); ++i) {
      predictions.push_back(prediction(i));
      std::vector<std::string>& texts = answers.emplace_back();
      for (const Answer& answer : entry(i).question.answers) texts.push_back(answer.text);
    }
    const AnswerScores scores = answer_scores(predictions, answers);
    return {{"exact_match", scores.exact_match}, {"f1", scores.f1}};
  }

  PredictionTable table() const override {
    PredictionTable out{{"row", "id", "prediction"}, {}};
    if (labelled_) out.columns = {"row", "id", "label", "prediction"};
    if (keeps_) out.columns.emplace_back("probability");
    for (std::size_t i = 0; i < found_.size(); ++i) {
      const Question& question = entry(i).question;
      std::vector<std::string>& row = out.rows.emplace_back();
      row = {text(i), question.id};
      if (labelled_) row.push_back(question.answers.empty() ? "" : question.answers[0].text);
      row.push_back(prediction(i));
      if (keeps_)
        row.push_back(probability_text(has_none(i) ? found_[i].none_share : found_[i].share));
    }
    return out;
  }

 private:
  /// The best of a question so far.
  struct Found {
    double score = -std::numeric_limits<double>::infinity();  // of the best part of the text
    ByteSpan span;
    double none = std::numeric_limits<double>::infinity();  // the least at [CLS]
    double share = 0, none_share = 0;                       // probabilities of both
  };

  const EncodedQuestions::Entry& entry(std::size_t i) const {
    return questions_.all[static_cast<std::size_t>(questions_.train) + i];
  }

  void add_window(const QuestionWindow& window, const float* starts, const float* ends,
                  std::int64_t context) {
    const auto number = static_cast<std::size_t>(window.entry - questions_.train);
    if (found_.size() <= number) found_.resize(number + 1);
    Found& found = found_[number];
    std::vector<double> of_start, of_end;
    if (keeps_) {
      const std::int64_t length = window.at + window.tokens + behind_;  // without padding
      of_start = softmax_of(starts, length), of_end = softmax_of(ends, length);
    }
    const auto share = [&](std::int64_t start, std::int64_t end) {
      return keeps_
                 ? of_start[static_cast<std::size_t>(start)] * of_end[static_cast<std::size_t>(end)]
                 : 0;
    };
    if (const double none = static_cast<double>(starts[0]) + ends[0]; none < found.none) {
      found.none = none;
      found.none_share = share(0, 0);
    }
    const auto is_of_text = [&](std::int64_t at) {
      return at >= window.at && at < window.at + window.tokens;
    };
    const std::vector<std::int64_t> last = best_ends(ends, context);
    for (const std::int64_t first : best_ends(starts, context)) {
      if (!is_of_text(first)) continue;
      for (const std::int64_t end : last) {
        if (!is_of_text(end) || end < first || end - first + 1 > most_tokens_) continue;
        const double score = static_cast<double>(starts[first]) + ends[end];
        if (score <= found.score) continue;
        found.score = score;
        found.share = share(first, end);
        found.span = span_of(window, first, end);
      }
    }
  }

  /// Bytes of the text from one position of a window to another.
  ByteSpan span_of(const QuestionWindow& window, std::int64_t first, std::int64_t last) const {
    const auto& question = questions_.all[static_cast<std::size_t>(window.entry)].question;
    const auto& spans =
        questions_.contexts[static_cast<std::size_t>(question.context)].tokens.spans;
    const std::int64_t shift = window.first - window.at;
    return {spans[static_cast<std::size_t>(first + shift)].begin,
            spans[static_cast<std::size_t>(last + shift)].end};
  }

  bool has_none(std::size_t i) const {
    return questions_.some_without && found_[i].none > found_[i].score;
  }

  std::string prediction(std::size_t i) const {
    const Found& found = found_[i];
    if (has_none(i)) return "";
    const auto& text =
        questions_.contexts[static_cast<std::size_t>(entry(i).question.context)].text;
    return text.substr(static_cast<std::size_t>(found.span.begin),
                       static_cast<std::size_t>(found.span.end - found.span.begin));
  }

  const EncodedQuestions& questions_;
  bool labelled_, keeps_ = false;
  std::vector<QuestionWindow> windows_;
  std::int64_t behind_ = 0;  // tokens of a sample behind those of its window
  std::int64_t most_tokens_, seen_ = 0;
  std::vector<Found> found_;  // by question
};

}  // namespace

std::unique_ptr<Judge> answer_judge(const Dataset& data, const QuestionSamplesOptions& options,
                                    std::int64_t most_tokens) {
  return std::make_unique<AnswerJudge>(data, options, most_tokens);
}

}  // namespace tessera
