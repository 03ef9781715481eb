#include "tessera/train/run_texts.h"

#include <algorithm>
#include <optional>

#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/train/programs.h"
#include "tessera/train/text_model.h"

namespace tessera {

namespace {

constexpr std::size_t kShownTexts = 2;  // of those that are scored

}  // namespace

void RunTexts::unless_not_finite(std::int64_t step, const char* what,
                                 const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& error) {
    if (error.fault() != Fault::Numerics) throw;
    tell(options_.callbacks, &TrainCallback::on_notice,
         text("no ", what, " after step ", step, ": ", error.what()));
  }
}

void RunTexts::show(std::int64_t step) {
  const RunConfig& config = run_.config;
  const GenerateOptions options{.tokens = config.sample_tokens,
                                .temperature = task_.text->temperature,
                                .seed = static_cast<std::uint64_t>(config.seed)};
  TextModel model(group_, writing_to_an_end(*task_.text, config, run_.data->vocabulary));
  unless_not_finite(step, "sample", [&] {
    tell(options_.callbacks, &TrainCallback::on_sample, step,
         sample_to_show(model, task_, shown_, run_.data->vocabulary, options));
  });
}

bool RunTexts::score(std::int64_t step, const Samples& samples, NamedMeans& means) {
  const std::int64_t count = std::min(run_.config.eval_texts, samples.size());
  if (count == 0) return true;
  const Vocabulary& vocabulary = run_.data->vocabulary;
  TextModel model(group_, *task_.text);
  std::vector<std::string> sources, written, references;
  std::vector<Beginning> beginnings;
  for (std::int64_t i = 0; i < count; ++i) {
    SampleTexts sample = texts_of_sample(task_, samples, i);
    sources.push_back(vocabulary.decode_text(sample.source));
    references.push_back(vocabulary.decode_text(sample.target));
    beginnings.push_back(beginning_of(*task_.text, vocabulary, std::move(sample.source)));
  }
  const auto stopped = [&] { return options_.stop != nullptr && options_.stop->load(); };
  const GenerateOptions options{.tokens = task_.text->context, .temperature = 0};
  unless_not_finite(step, "BLEU", [&] {
    for (std::size_t first = 0; first < beginnings.size() && !stopped();) {
      const std::size_t rows =
          std::min(static_cast<std::size_t>(model.rows()), beginnings.size() - first);
      for (const Tokens& tokens :
           generate(model, vocabulary, std::span(beginnings).subspan(first, rows), options))
        written.push_back(vocabulary.decode_text(tokens));
      first += rows;
    }
    if (written.size() < references.size()) return;
    means.emplace_back("bleu", corpus_bleu(written, references).score);
    for (std::size_t i = 0; i < std::min(kShownTexts, written.size()); ++i)
      tell(options_.callbacks, &TrainCallback::on_sample, step,
           text(sources[i], "\n-> ", written[i], "\nreference: ", references[i]));
  });
  return !stopped() || written.size() == references.size();
}

}  // namespace tessera
