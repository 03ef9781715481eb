#include "tessera/token_files/token_files.h"

#include <algorithm>
#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/size.h"
#include "tessera/base/text.h"

namespace tessera {

bool names_token_files(std::span<const std::string> words) {
  const auto is_there = [](const std::string& path) {
    std::error_code ignored;
    return std::filesystem::exists(path, ignored);
  };
  // A folder of sample indices may have the prefix for its name.
  if (std::ranges::none_of(words, IndexedDataset::exists) && std::ranges::all_of(words, is_there))
    return false;
  const BlendList blend = parse_blend(words);
  std::vector<std::string> other;
  for (const std::string& prefix : blend.prefixes) {
    if (!IndexedDataset::exists(prefix)) other.push_back(prefix);
  }
  if (other.size() == blend.prefixes.size() && blend.weights.empty()) return false;
  if (other.empty()) return true;
  fail(Fault::Usage, "data '", other.front(), "' is not a prefix of token files: there is no '",
       other.front(), ".bin' with an .idx file beside it, while the other data ",
       blend.weights.empty() ? "is token files" : "has weights, as token files have",
       "; give only prefixes of token files, or only texts");
}

std::int64_t TokenSource::num_tokens() const {
  std::int64_t out = 0;
  for (const auto& file : files) out = size_sum(out, file->num_tokens(), "tokens of all files");
  return out;
}

TokenSource open_token_source(std::span<const std::string> words) {
  BlendList blend = parse_blend(words);
  TokenSource out;
  out.weights = std::move(blend.weights);
  for (const std::string& prefix : blend.prefixes)
    out.files.push_back(std::make_shared<const IndexedDataset>(prefix));
  require(out.files.size() < 32767, "data names ", out.files.size(),
          " token files, but at most 32766 can be blended; join some of them");
  return out;
}

bool TokenFiles::has(DataPart part) const {
  if (valid_is_apart()) return part != DataPart::Test;
  const SplitShares shares = parse_split(split);
  return std::ranges::any_of(train.files, [&](const auto& file) {
    const auto [first, last] = shares.range(part, file->num_sequences());
    return last > first;
  });
}

std::string TokenFiles::digest() const {
  StreamHash hash;
  for (const TokenSource* source : {&train, &valid}) {
    for (const auto& file : source->files) hash.update(file->digest());
    for (const double weight : normalised(source->weights)) hash.update(text(weight, " "));
    hash.update(";");
  }
  if (!valid_is_apart()) hash.update(split);
  return hash.text();
}

std::vector<GptDatasetChoice> choices_of_files(const TokenFiles& files, const TokenSource& source,
                                               const TokenSampleChoice& choice) {
  const GptDatasetChoice plain{choice.part,    files.valid_is_apart() ? "" : files.split,
                               choice.context, choice.vocabulary,
                               choice.samples, choice.seed,
                               files.cache,    choice.written};
  std::vector<GptDatasetChoice> out(source.files.size(), plain);
  if (source.weights.empty()) {
    // Several files without weights are read once, each in proportion to its size.
    for (GptDatasetChoice& of_file : out) {
      if (out.size() > 1) of_file.samples.reset();
    }
  } else if (choice.samples) {
    const std::vector<std::int64_t> wanted =
        samples_of_parts(normalised(source.weights), *choice.samples, kBlendSurplus);
    for (std::size_t i = 0; i < out.size(); ++i) out[i].samples = wanted[i];
  }
  return out;
}

const TokenSource& TokenFiles::source_of(DataPart part) const {
  return valid_is_apart() && part == DataPart::Valid ? valid : train;
}

std::int64_t TokenFiles::samples_in_epoch(DataPart part, std::int64_t context) const {
  const TokenSource& source = source_of(part);
  const auto choices = choices_of_files(*this, source, {.part = part, .context = context});
  std::int64_t out = 0;
  for (std::size_t i = 0; i < choices.size(); ++i)
    out = size_sum(out, gpt_part(*source.files[i], choices[i]).samples_in_epoch(),
                   "samples of all files");
  return std::max<std::int64_t>(out, 1);
}

std::string TokenFiles::order_text(DataPart part, std::int64_t context,
                                   std::int64_t samples) const {
  const TokenSource& source = source_of(part);
  const auto choices =
      choices_of_files(*this, source, {.part = part, .context = context, .samples = samples});
  std::vector<std::string> out;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const GptIndexPlan plan = gpt_part(*source.files[i], choices[i]).plan;
    out.push_back(text(plan.epochs, plan.epochs == 1 ? " pass" : " passes", " over '",
                       source.files[i]->prefix(), "'",
                       plan.separate_last_epoch() ? ", the last one shuffled apart" : ""));
  }
  return join(out, "; ");
}

}  // namespace tessera
