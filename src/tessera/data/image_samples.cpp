#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/start_thread.h"
#include "tessera/data/images.h"
#include "tessera/data/pictures/in_threads.h"
#include "tessera/tensor/ignored_label.h"
#include "tessera/token_files/permutation.h"

namespace tessera {

namespace {

class ImageSamples final : public Samples {
 public:
  ImageSamples(const Pictures::Part& part, const ImageSamplesOptions& options)
      : images_(part.set),
        range_(part.range),
        options_(options),
        key_(random_key(options.seed, "data.order")),
        view_key_(random_key(options.seed, "data.view")) {
    if (options.most > 0) range_.count = std::min(range_.count, options.most);
    if (range_.count < 1)
      fail(Fault::Data, "'", images_->path(), "': none of its ", images_->size(),
           " pictures is in this part");
  }
  ~ImageSamples() override {
    if (reader_.joinable()) reader_.join();
  }

  std::int64_t size() const override { return range_.count; }

  void fill(std::int64_t first, std::int64_t count, BatchInputs& batch) const override {
    const std::span<float> patches = batch.fill<float>("patches");
    const std::span<std::int32_t> labels = batch.fill<std::int32_t>("labels");
    const std::lock_guard lock(filling_);
    if (reader_.joinable()) reader_.join();
    if (ahead_.first == first && ahead_.count == count && ahead_.patches.size() == patches.size()) {
      if (ahead_.error) std::rethrow_exception(std::exchange(ahead_, {}).error);
      std::ranges::copy(ahead_.patches, patches.begin());
      std::ranges::copy(ahead_.labels, labels.begin());
    } else {
      draw(first, count, patches, labels);
    }
    read_ahead(first + count, count, patches.size());
  }

 private:
  /// A batch that is drawn before it is asked for.
  struct Ahead {
    std::int64_t first = -1, count = 0;
    std::vector<float> patches;
    std::vector<std::int32_t> labels;
    std::exception_ptr error;  // of drawing it: told to whoever asks for it
  };

  void draw(std::int64_t first, std::int64_t count, std::span<float> patches,
            std::span<std::int32_t> labels) const {
    const std::size_t pixels = patches.size() / static_cast<std::size_t>(count);
    const auto row_of = [&](std::int64_t i) {
      const auto row = static_cast<std::size_t>(i);
      labels[row] = draw_one(first + i, patches.subspan(row * pixels, pixels));
    };
    if (images_->is_decoded()) return in_threads(count, row_of);
    for (std::int64_t i = 0; i < count; ++i) row_of(i);
  }

  /// Returns the label.
  std::int32_t draw_one(std::int64_t sample, std::span<float> to) const {
    const std::int64_t at = place(sample);
    if (at < 0) {
      std::ranges::fill(to, 0.0F);
      return kIgnoredLabel;
    }
    std::vector<float> picture(to.size());
    images_->read(at, {options_.varied, view_key_, sample / range_.count}, picture);
    cut_to_patches({picture, images_->channels(), images_->height(), images_->width()},
                   options_.patch, to);
    return images_->label(at);
  }

  void read_ahead(std::int64_t first, std::int64_t count, std::size_t numbers) const {
    ahead_ = {};
    if (!images_->is_decoded() || (!options_.shuffled && first >= range_.count)) return;
    ahead_.first = first;
    ahead_.count = count;
    ahead_.patches.resize(numbers);
    ahead_.labels.resize(static_cast<std::size_t>(count));
    try {
      reader_ = start_thread([this] {
        try {
          draw(ahead_.first, ahead_.count, ahead_.patches, ahead_.labels);
        } catch (...) {
          ahead_.error = std::current_exception();
        }
      });
    } catch (const Error&) {  // the system has no more threads: it is drawn when it is asked for
      ahead_ = {};
    }
  }

  /// Which picture a sample is; below 0 behind the end of a validation.
  std::int64_t place(std::int64_t sample) const {
    if (!options_.shuffled) return sample < range_.count ? range_.first + sample : -1;
    const auto n = static_cast<std::uint64_t>(range_.count);
    const auto k = static_cast<std::uint64_t>(sample);
    return range_.first + static_cast<std::int64_t>(permute(k % n, n, key_, k / n));
  }

  std::shared_ptr<const PictureSet> images_;
  ImageRange range_;
  ImageSamplesOptions options_;
  std::uint64_t key_, view_key_;
  mutable std::mutex filling_;  // of what follows
  mutable Ahead ahead_;
  mutable std::thread reader_;  // fills ahead_, until it is joined
};

}  // namespace

void cut_to_patches(const PixelsOf& picture, std::int64_t side, std::span<float> out) {
  auto to = out.begin();
  for (std::int64_t y = 0; y < picture.height; y += side) {
    for (std::int64_t x = 0; x < picture.width; x += side) {
      for (std::int64_t line = 0; line < picture.channels * side; ++line) {
        const auto from = picture.pixels.begin() +
                          (line / side * picture.height + y + line % side) * picture.width + x;
        to = std::copy(from, from + side, to);
      }
    }
  }
}

std::unique_ptr<Samples> image_samples(const Pictures::Part& part,
                                       const ImageSamplesOptions& options) {
  return std::make_unique<ImageSamples>(part, options);
}

}  // namespace tessera
