#include "tessera/data/token_files.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/size.h"
#include "tessera/base/text.h"

namespace tessera {

bool names_token_files(std::span<const std::string> words) {
  const BlendList blend = parse_blend(words);
  std::vector<std::string> other;
  for (const std::string& prefix : blend.prefixes) {
    if (!IndexedDataset::exists(prefix)) other.push_back(prefix);
  }
  if (other.size() == blend.prefixes.size() && blend.weights.empty()) return false;
  require(other.empty(), "data '", other.front(), "' is no prefix of token files: there is no '",
          other.front(), ".bin' with an .idx file beside it, while the other data ",
          blend.weights.empty() ? "is token files" : "has weights, as token files have",
          "; give prefixes of token files alone, or texts alone");
  return true;
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

TokenSamples::TokenSamples(const TokenFiles& files, const TokenSampleChoice& choice,
                           std::vector<std::string>& notices) {
  const bool apart = files.valid_is_apart();
  const TokenSource& source = apart && choice.part == DataPart::Valid ? files.valid : files.train;
  GptDatasetChoice of_file{choice.part,       apart ? "" : files.split, choice.context,
                           choice.vocabulary, choice.samples,           choice.seed,
                           files.cache};
  const std::vector<double> weights = normalised(source.weights);
  const bool whole = source.files.size() > 1 && weights.empty();
  std::vector<std::int64_t> wanted;
  if (!weights.empty() && choice.samples)
    wanted = samples_of_parts(weights, *choice.samples, kBlendSurplus);
  for (std::size_t i = 0; i < source.files.size(); ++i) {
    if (whole) of_file.samples.reset();
    if (!wanted.empty()) of_file.samples = wanted[i];
    datasets_.emplace_back(source.files[i], of_file, notices);
  }
  size_ = datasets_.front().size();
  if (datasets_.size() == 1 && weights.empty()) return;
  std::vector<std::int64_t> sizes;
  for (const GptDataset& dataset : datasets_) sizes.push_back(dataset.size());
  if (weights.empty() || !choice.samples) {
    std::int64_t all = 0;
    for (const std::int64_t size : sizes) all = size_sum(all, size, "samples of all files");
    size_ = choice.samples ? std::min(all, std::max<std::int64_t>(1, *choice.samples)) : all;
    std::vector<double> shares(sizes.begin(), sizes.end());
    blend_ = choice.samples ? blend_by_weight(normalised(shares), size_) : blend_all(sizes);
    return;
  }
  size_ = 0;
  for (const std::int64_t part : samples_of_parts(weights, *choice.samples))
    size_ = size_sum(size_, part, "samples of all files");
  blend_ = blend_by_weight(weights, size_);
}

std::int64_t TokenSamples::epoch() const {
  std::int64_t out = 0;
  for (const GptDataset& dataset : datasets_)
    out = size_sum(out, dataset.epoch(), "samples of all files");
  return std::max<std::int64_t>(out, 1);
}

void TokenSamples::read(std::int64_t sample, std::span<std::int32_t> out) const {
  check(sample >= 0, "sample ", sample);
  const std::int64_t number = sample % size_;
  if (!blend_) return datasets_.front().read(number, out);
  const GptDataset& dataset = datasets_.at(static_cast<std::size_t>(blend_->datasets.at(number)));
  // A blend may want some more of a dataset than it was asked for.
  dataset.read(blend_->samples.at(number) % dataset.size(), out);
}

}  // namespace tessera
