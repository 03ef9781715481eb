#include <algorithm>

#include "tessera/apps/command.h"
#include "tessera/apps/flags.h"
#include "tessera/apps/score_rows.h"
#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/bleu.h"
#include "tessera/data/label_scores.h"
#include "tessera/files/text.h"
#include "tessera/train/metrics.h"

namespace tessera {

namespace {

constexpr const char *kBleu = "bleu", *kWer = "wer";

std::vector<Flag> score_flags() {
  return {
      {"metric",
       {},
       "NAME",
       text("bleu, wer (word error rate), or, of --predictions, ", join(row_metrics()), " [bleu]")},
      {"hypotheses", {}, "FILE", "the texts to score, one per line"},
      {"references", {}, "FILE", "the texts that they should be, one per line"},
      {"predictions", {}, "FILE", "a table of tessera predict, with labels"},
      {"label-column", {}, "NAME", "column with the labels [label]"},
      {"prediction-column", {}, "NAME", "column with the predictions [prediction]"},
      {"group-column", {}, "NAME", "column that says which rows belong together, as a question's"},
      {"score-column", {}, "NAME", "column by which recall-at-K orders a group's rows [p(1)]"},
  };
}

struct ScoreAsked {
  std::string metric, hypotheses, references, predictions;
  ScoredColumns columns;
};

ScoreAsked read_score(ParsedFlags& parsed, Problems& problems) {
  const bool given = parsed.find("metric") != nullptr;
  ScoreAsked out;
  out.metric = given ? parsed.take_value("metric") : kBleu;
  const bool of_rows = is_row_metric(out.metric);
  if (!of_rows && out.metric != kBleu && out.metric != kWer) {
    problems.add(text("metric is '", out.metric, "'; it can be bleu, wer, ", join(row_metrics())));
    return out;
  }
  const std::vector<const char*> wanted =
      of_rows ? std::vector{"predictions"} : std::vector{"hypotheses", "references"};
  for (const char* const name : wanted) {
    if (parsed.find(name) == nullptr)
      problems.add(text(name, " is missing; give a file with ",
                        of_rows ? "predictions and labels" : "one text per line", ", like --", name,
                        " FILE"));
  }
  for (const char* const name : {"hypotheses", "references", "predictions", "label-column",
                                 "prediction-column", "group-column", "score-column"}) {
    const bool is_of_texts =
        name == std::string_view("hypotheses") || name == std::string_view("references");
    if (parsed.find(name) != nullptr && is_of_texts == of_rows)
      problems.add(text("--", name, " is not read for metric ", out.metric, "; leave it out, or ",
                        "give --metric with one that it is for"));
  }
  for (const std::string& word : parsed.words)
    problems.add(text("'", word, "' belongs to no flag; give files with --hypotheses and ",
                      "--references, or --predictions"));
  out.hypotheses = parsed.take_value("hypotheses");
  out.references = parsed.take_value("references");
  out.predictions = parsed.take_value("predictions");
  const auto column = [&](const char* name, std::string& to) {
    const std::string value = parsed.take_value(name);
    if (!value.empty()) to = value;
  };
  column("label-column", out.columns.label);
  column("prediction-column", out.columns.prediction);
  column("group-column", out.columns.group);
  column("score-column", out.columns.score);
  return out;
}

void score_texts(const ScoreAsked& asked, Console& console) {
  const std::vector<std::string> ours = read_lines(asked.hypotheses),
                                 theirs = read_lines(asked.references);
  if (ours.size() != theirs.size())
    fail(Fault::Data, "'", asked.hypotheses, "' has ", counted(std::ssize(ours), "line"), " and '",
         asked.references, "' has ", counted(std::ssize(theirs), "line"),
         "; give one reference per hypothesis, in the same order");
  if (asked.metric == kBleu) {
    console.out << to_text(corpus_bleu(ours, theirs)) << "\n";
    return;
  }
  const WordErrors errors = word_errors(ours, theirs);
  console.out << "WER = " << json_number(errors.rate()) << " (" << errors.changed << " changed, "
              << errors.left_out << " left out, " << errors.added << " added, of "
              << counted(errors.words, "word") << ")\n";
}

}  // namespace

int score_command(const Arguments& arguments, Console& console, const OwnFamilies&) {
  Problems problems;
  ParsedFlags parsed = parse_flags(arguments, score_flags(), problems);
  if (parsed.help) {
    console.out
        << "tessera score --hypotheses FILE --references FILE\n"
           "tessera score --metric NAME --predictions FILE\n\n"
           "Prints BLEU as sacreBLEU does with its default settings: tokenizer 13a, case counts, "
           "smoothing exp.\n"
           "Or the word error rate, or what belongs to a data set: cola, mrpc, multirc, ...\n"
           "Files are UTF-8.\n\n"
        << flags_help(score_flags(), console.columns);
    return 0;
  }
  const ScoreAsked asked = read_score(parsed, problems);
  problems.raise();
  if (asked.predictions.empty()) {
    score_texts(asked, console);
    return 0;
  }
  for (const auto& [name, score] : scores_of_rows(asked.metric, asked.predictions, asked.columns))
    console.out << name << "  " << json_number(score) << "\n";
  return 0;
}

}  // namespace tessera
