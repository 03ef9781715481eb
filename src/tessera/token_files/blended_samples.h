#pragma once
/// Samples of a part of token files: of one pair, or of several that are blended.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/size.h"
#include "tessera/token_files/blend.h"
#include "tessera/token_files/index_sets.h"
#include "tessera/token_files/token_files.h"

namespace tessera {

/// Samples as Megatron-LM numbers them. Dataset is made of a pair of files and a GptDatasetChoice,
/// and has size(), epoch() and index_set(). All functions may be called from any thread.
template <typename Dataset>
class BlendedSamples {
 public:
  /// Errors: as of Dataset, with the file.
  BlendedSamples(const TokenFiles& files, const TokenSampleChoice& choice,
                 std::vector<std::string>& notices) {
    const TokenSource& source = files.source_of(choice.part);
    const std::vector<GptDatasetChoice> choices = choices_of_files(files, source, choice);
    BlendDescription blend{.part = choice.part};
    for (std::size_t i = 0; i < choices.size(); ++i) {
      datasets_.emplace_back(source.files[i], choices[i], notices);
      blend.sizes.push_back(datasets_.back().size());
      size_ = size_sum(size_, blend.sizes.back(), "samples of all files");
    }
    const std::vector<double> weights = normalised(source.weights);
    if (weights.empty()) {
      if (datasets_.size() == 1) return;
      if (choice.samples) {
        size_ = std::min(size_, std::max<std::int64_t>(1, *choice.samples));
        blend.weights = normalised(std::vector<double>(blend.sizes.begin(), blend.sizes.end()));
      }
    } else {
      if (choice.samples) {
        size_ = 0;
        for (const std::int64_t part : samples_of_parts(weights, *choice.samples))
          size_ = size_sum(size_, part, "samples of all files");
      }
      // megatron-core divides by their sum a second time, which changes last bits.
      blend.weights = normalised(weights);
    }
    blend.size = size_;
    if (!files.cache.empty()) {
      for (std::size_t i = 0; i < choices.size(); ++i)
        blend.datasets.push_back(
            Dataset::index_set(source.files[i]->prefix(), choices[i]).description);
    }
    blend_ = kept_blend(blend, files.cache, notices);
  }

  /// Samples that there are, at least as many as are wanted, but for several files without weights:
  /// then those of one epoch, if fewer.
  std::int64_t size() const { return size_; }
  /// Those of one pass over all files.
  std::int64_t epoch() const {
    std::int64_t out = 0;
    for (const Dataset& dataset : datasets_)
      out = size_sum(out, dataset.epoch(), "samples of all files");
    return std::max<std::int64_t>(out, 1);
  }

  /// Where a sample is: the dataset, and its number there. Behind the last they begin anew.
  std::pair<const Dataset&, std::int64_t> at(std::int64_t sample) const {
    check(sample >= 0, "sample ", sample);
    const std::int64_t number = sample % size_;
    if (!blend_) return {datasets_.front(), number};
    const std::int64_t of = blend_->datasets.at(number), its = blend_->samples.at(number);
    if (of < 0 || of >= std::ssize(datasets_) || its < 0)
      fail(Fault::Data, "the sample indices of '", blend_->datasets.path(),
           "' do not fit the token files: sample ", number, " is number ", its, " of file ", of,
           ", and there are ", datasets_.size(), " files; delete the index files to rebuild them");
    const Dataset& dataset = datasets_[static_cast<std::size_t>(of)];
    // A blend may want some more of a dataset than it was asked for.
    return {dataset, its % dataset.size()};
  }

 private:
  std::vector<Dataset> datasets_;
  std::optional<BlendIndices> blend_;  // none: one dataset
  std::int64_t size_ = 0;
};

/// Of models that predict the next token.
using TokenSamples = BlendedSamples<GptDataset>;

}  // namespace tessera
