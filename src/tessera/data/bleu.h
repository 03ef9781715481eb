#pragma once
/// BLEU: how much of a text's words and runs of words another text has.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// The words of a line as BLEU counts them: the tokenizer "13a" of sacreBLEU, which is that of
/// mteval-v13a.pl. Capitals count.
std::vector<std::string> bleu_words(std::string_view line);

/// BLEU of a corpus, and what it is made of.
struct Bleu {
  static constexpr std::size_t kOrders = 4;  // runs of 1 to 4 words

  double score = 0;                          // 0 to 100
  std::array<double, kOrders> precisions{};  // in per cent; smoothed where nothing matches
  double brevity_penalty = 1;                // below 1: the hypotheses are shorter
  std::int64_t words = 0, reference_words = 0;
  std::array<std::int64_t, kOrders> matches{}, runs{};  // of so many runs so many are in references

  friend bool operator==(const Bleu&, const Bleu&) = default;
};

/// BLEU of the lines `hypotheses`, each against the reference of its place: sacreBLEU's number with
/// its default settings (one reference, 13a, case counts, smoothing exp, no effective order).
///
/// Each run of words counts as often as the reference of its line has it, at most. The score is the
/// brevity penalty times the geometric mean of the four precisions. Where no run of some length
/// matches, its precision is 1 / (2^k x runs) for the k-th such length; where hypotheses have no
/// run of some length, or nothing matches at all, the score is 0.
///
/// Errors:  Fault::Usage: another number of references than hypotheses; none.
/// Source:  Papineni et al. 2002; Post 2018, arXiv 1804.08771.
Bleu corpus_bleu(std::span<const std::string> hypotheses, std::span<const std::string> references);

/// sacreBLEU's line: "BLEU = 27.91 59.2/33.6/21.4/14.3 (BP = 1.000 ratio = 1.013 hyp_len = ...)".
std::string to_text(const Bleu& bleu);

}  // namespace tessera
