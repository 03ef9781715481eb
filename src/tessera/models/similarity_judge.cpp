/// Judges vectors of texts that belong together: does each anchor find its positive among those of
/// all samples?

#include <algorithm>
#include <vector>

#include "tessera/base/format.h"
#include "tessera/base/text.h"
#include "tessera/models/sentence_embedding.h"

namespace tessera {

namespace {

constexpr std::int64_t kNear = 10;  // places that recall and rank look at

class SimilarityJudge final : public Judge {
 public:
  void add(std::int64_t, std::int64_t count, const Predictions& predictions) override {
    const HostTensor& vectors = predictions.at("vectors");  // [batch, texts, width], of length 1
    texts_ = vectors.shape()[1];
    width_ = vectors.shape()[2];
    const float* const begin = vectors.data<float>();
    vectors_.insert(vectors_.end(), begin, begin + count * texts_ * width_);
  }

  NamedMeans scores() const override {
    if (vectors_.empty()) return {};
    const std::vector<std::int64_t> places = places_of_all();
    double first = 0, near = 0, inverse = 0;
    for (const std::int64_t place : places) {
      first += place == 1;
      near += place <= kNear;
      inverse += place <= kNear ? 1.0 / static_cast<double>(place) : 0;
    }
    const auto n = static_cast<double>(places.size());
    return {{"recall_at_1", first / n}, {"recall_at_10", near / n}, {"mrr_at_10", inverse / n}};
  }

  PredictionTable table() const override {
    PredictionTable out{{"row", "similarity", "place"}, {}};
    const std::vector<std::int64_t> places = places_of_all();
    for (std::int64_t i = 0; i < samples(); ++i)
      out.rows.push_back({text(i), text(static_cast<float>(cosine(i, i, 1))),
                          text(places[static_cast<std::size_t>(i)])});
    return out;
  }

 private:
  std::int64_t samples() const {
    return texts_ == 0 ? 0 : std::ssize(vectors_) / (texts_ * width_);
  }
  const float* vector_of(std::int64_t sample, std::int64_t which) const {
    return vectors_.data() + (sample * texts_ + which) * width_;
  }
  /// Of the anchor of one sample and a text of another.
  double cosine(std::int64_t anchor, std::int64_t other, std::int64_t which) const {
    const float *const a = vector_of(anchor, 0), *const b = vector_of(other, which);
    float out = 0;
    for (std::int64_t i = 0; i < width_; ++i) out += a[i] * b[i];
    return out;
  }
  /// Of each anchor, the place of its positive among all positives and negatives, from 1 on.
  std::vector<std::int64_t> places_of_all() const {
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < samples(); ++i) {
      const double own = cosine(i, i, 1);
      std::int64_t nearer = 0;
      for (std::int64_t j = 0; j < samples(); ++j) {
        for (std::int64_t which = 1; which < texts_; ++which)
          nearer += !(j == i && which == 1) && cosine(i, j, which) > own;
      }
      out.push_back(nearer + 1);
    }
    return out;
  }

  std::int64_t texts_ = 0, width_ = 0;
  std::vector<float> vectors_;
};

}  // namespace

std::unique_ptr<Judge> similarity_judge(const Dataset&) {
  return std::make_unique<SimilarityJudge>();
}

}  // namespace tessera
