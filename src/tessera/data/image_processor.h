#pragma once
/// From a picture in bytes to what a model reads: of one size, scaled and normalised, as the image
/// processors of transformers do it.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/data/picture_resize.h"

namespace tessera {

/// The numbers of preprocessor_config.json.
struct ImageProcessor {
  std::int64_t height = 0, width = 0;            // that pictures get, whatever shape they have;
  std::int64_t shortest_edge = 0;                // or, above 0, what their shorter side gets
  std::int64_t crop_height = 0, crop_width = 0;  // of their middle, cut out after that; 0: all
  Resample resample = Resample::Bilinear;
  double rescale_factor = 1.0 / 255;        // of bytes; then
  std::vector<double> mean{0.5}, std{0.5};  // (x - mean) / std, of each channel or of all

  /// Of what comes out; 0: not of one size.
  std::int64_t out_height() const { return crop_height > 0 ? crop_height : height; }
  std::int64_t out_width() const { return crop_width > 0 ? crop_width : width; }
  friend bool operator==(const ImageProcessor&, const ImageProcessor&) = default;
};

/// From "size=224x224,resample=bicubic,image_mean=0.5:0.5:0.5": height x width, or shortest_edge=256;
/// crop_size=224x224, rescale_factor, image_std. What is not said: size, `side` both ways, or without
/// crop_size the shortest edge cut to it; else as above. Errors: Fault::Usage.
ImageProcessor parse_image_processor(std::string_view given, std::int64_t side);
/// All of it; parse_image_processor reads it back.
std::string to_text(const ImageProcessor& processor);

/// What a drawn picture shows in place of all of it: a part, resized, and perhaps mirrored.
struct PictureView {
  PictureBox box;
  bool mirrored = false;
};
/// A part of 8 to 100 % of the pixels, 3:4 to 4:3, and mirrored or not, as torchvision's
/// RandomResizedCrop and RandomHorizontalFlip draw it; a pure function of the key, the number of the
/// picture and the epoch.
PictureView draw_view(std::uint64_t key, std::int64_t picture, std::int64_t epoch,
                      std::int64_t height, std::int64_t width);

/// A picture as the model reads it, [channels, height, width]: resized and cut; black where it is
/// smaller than the cut. Errors: Fault::Data: sides so unlike that it would have above kMostPixels.
void process(const Picture& picture, const ImageProcessor& processor, std::span<float> out);
/// The part that `view` shows in its size, in place of resizing and cutting.
void process(const Picture& picture, const PictureView& view, const ImageProcessor& processor,
             std::span<float> out);

}  // namespace tessera
