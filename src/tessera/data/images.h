#pragma once
/// Pictures as the data of a run; those in a file as image processors leave them.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/data/picture_set.h"
#include "tessera/files/safetensors.h"
#include "tessera/token_files/samples.h"

namespace tessera {

/// A file of safetensors with two tensors, named as transformers names a model's inputs:
/// pixel_values [n, channels, height, width] of f32, f16 or bf16; labels [n] of i32 or i64, the
/// class of each picture, from 0 on. Pictures are read when a sample is drawn.
class ImageSet final : public PictureSet {
 public:
  /// With `may_lack_labels` the second tensor may be missing: then all labels are 0.
  /// Errors: Fault::Data: no such tensors, other shapes or types, no picture, a label below 0.
  static ImageSet open(const std::string& path, bool may_lack_labels = false);
  /// The path is that of a file with such an ending, ".safetensors".
  static bool is_name(const std::string& path);

  const std::string& path() const override { return file_->path(); }
  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  std::int64_t channels() const override { return pixels_.shape[1]; }
  std::int64_t height() const override { return pixels_.shape[2]; }
  std::int64_t width() const override { return pixels_.shape[3]; }
  bool labelled() const override { return labelled_; }
  std::int32_t label(std::int64_t picture) const override;
  /// They are drawn as they are.
  void read(std::int64_t picture, const PictureDraw& draw, std::span<float> out) const override;
  /// Of the labels and of the pixels of some pictures, the first and the last among them.
  std::string digest() const override;

 private:
  ImageSet() = default;
  std::shared_ptr<const SafetensorsFile> file_;
  const StoredTensor* tensor_ = nullptr;
  TensorType pixels_;
  std::vector<std::int32_t> labels_;
  bool labelled_ = true;
};

/// Which pictures of a set: [first, first + count).
struct ImageRange {
  std::int64_t first = 0, count = 0;
};

/// Pictures as the data of a run: those that train, and those that are held out.
struct Pictures {
  struct Part {
    std::shared_ptr<const PictureSet> set;
    ImageRange range;
  };
  Part train, valid;

  /// The last of a set are held out, as many as of tokens (count_to_train).
  static Pictures split(std::shared_ptr<const PictureSet> set, double held_out);
  /// All of one set train, all of another are held out.
  static Pictures of(std::shared_ptr<const PictureSet> train,
                     std::shared_ptr<const PictureSet> valid);
  /// XXH3-128 of both.
  std::string digest() const;
};

/// A picture, [channels, height, width] row-major.
struct PixelsOf {
  std::span<const float> pixels;
  std::int64_t channels = 0, height = 0, width = 0;
};
/// Its square patches line by line, each [channels, side, side]; sides of the picture are multiples
/// of `side`.
void cut_to_patches(const PixelsOf& picture, std::int64_t side, std::span<float> out);

struct ImageSamplesOptions {
  std::int64_t patch = 0;  // side of a square patch, in pixels
  std::uint64_t seed = 0;  // of the order
  bool shuffled = true;    // drawn anew for each epoch; else as they lie
  std::int64_t most = 0;   // the first so many; 0: all
  bool varied = false;     // another part of each, perhaps mirrored, in each epoch
};

/// Samples of pictures that are cut into patches. Inputs of a batch of b: patches [b, p, c s s] of
/// f32, the p patches of a picture line by line, each [c, s, s]; labels [b] of i32. Not shuffled,
/// those behind the last have kIgnoredLabel. The batch that follows is read ahead, by all cores.
/// Errors: Fault::Data: no picture in the part.
std::unique_ptr<Samples> image_samples(const Pictures::Part& part,
                                       const ImageSamplesOptions& options);

}  // namespace tessera
