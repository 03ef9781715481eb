#pragma once
/// Samples of a text in which marks stand for spans that noise has taken out, for models that write
/// what was there.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tessera/token_files/data_split.h"
#include "tessera/token_files/sampler.h"
#include "tessera/token_files/samples.h"

namespace tessera {

class Vocabulary;

/// How a text is damaged.
struct TextNoise {
  enum class Kind {
    Spans,      // each span has a mark of its own; the marks are written, each with its span behind
    Infilling,  // all have the same mark, also spans of no token; the text is written
  };
  Kind kind = Kind::Spans;
  double share = 0;        // of the tokens that are in spans
  double mean_length = 0;  // of a span
  bool shuffles_sentences = false;
};
/// Source: Raffel et al. 2019, arXiv 1910.10683, section 3.1.4; as in its authors' code, a text
/// begins with tokens that are left and ends with a span, behind which no mark is needed.
inline constexpr TextNoise kSpanCorruption = {TextNoise::Kind::Spans, 0.15, 3, false};
/// Source: Lewis et al. 2019, arXiv 1910.13461, sections 2.2 and 5.1; lengths are Poisson's.
inline constexpr TextNoise kTextInfilling = {TextNoise::Kind::Infilling, 0.3, 3, true};

using NoisedTokens = std::vector<std::int32_t>;

/// What is read and what is written, without tokens around them.
struct NoisedText {
  NoisedTokens source, target;
};
/// A pure function of the key and the number of the sample. `marks`: at least one a span, or one.
/// `ends_sentence`: of each id, where sentences are shuffled. Of less than two tokens no span is
/// taken out of Kind::Spans.
NoisedText noised_text(std::span<const std::int32_t> tokens, const TextNoise& noise,
                       std::span<const std::int32_t> marks, const std::vector<bool>& ends_sentence,
                       std::uint64_t key, std::int64_t sample);

/// Tokens of a sample.
struct NoisedLengths {
  std::int64_t text = 0;               // before the noise; 0: there is no room
  std::int64_t target = 0, spans = 0;  // of Kind::Infilling spans are 1: they have one mark
};
/// The longest text of which `source` tokens can hold what is left and, of Kind::Infilling,
/// `target` tokens the text.
NoisedLengths noised_lengths(const TextNoise& noise, std::int64_t source, std::int64_t target);

/// Of each id, whether a sentence ends with it: its text ends with a full stop, a question mark or
/// an exclamation mark, or has a new line.
std::vector<bool> sentence_ends(const Vocabulary& vocabulary);

struct NoisedTextsOptions {
  TextNoise noise;
  std::int64_t source = 0, written = 0;  // positions of what is read and of what is written
  std::int32_t pad = 0, start = 0, end = 0;
  std::optional<std::int32_t> first = std::nullopt;  // before each text; none: nothing
  std::vector<std::int32_t> marks = {};
  std::vector<bool> ends_sentence = {};
  std::uint64_t seed = 0;
  SampleOrder order = SampleOrder::ShuffledWindows;
  std::int64_t most = 0;  // held out: the first so many samples; 0: all
};

/// Of a sample with these options. Errors: Fault::Usage: no room for a text of a token, or for what
/// is written of it; more spans than marks.
NoisedLengths noised_text_lengths(const NoisedTextsOptions& options);

/// Samples of windows of `tokens`, which must outlive them; each is as long as noised_lengths says.
/// Those that train are drawn as token_files/sampler.h says, and later epochs have other spans;
/// those that are held out have every token once, in order, and the seed has no influence.
///
/// Inputs of a batch of n samples, all i32, are those of translations:
///   source [n, source]      what is left, and the end
///   ids [n, written]        the start, and what is written
///   labels [n, written]     what is written, and the end; behind it the ignored label
///
/// Errors: as of noised_text_lengths; Fault::Data: too few tokens.
std::unique_ptr<Samples> noised_texts(std::span<const std::int32_t> tokens, DataPart part,
                                      const NoisedTextsOptions& options);

}  // namespace tessera
