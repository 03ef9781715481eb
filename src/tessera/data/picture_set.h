#pragma once
/// Pictures by number, with a class each, of one size and as a model reads them.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tessera {

/// How a picture is drawn in training: as another part of it each time, or as it is.
struct PictureDraw {
  bool varied = false;
  std::uint64_t key = 0;   // of random numbers
  std::int64_t epoch = 0;  // from 0
};

class PictureSet {
 public:
  virtual ~PictureSet() = default;
  /// A file or a folder, for messages.
  virtual const std::string& path() const = 0;
  virtual std::int64_t size() const = 0;
  virtual std::int64_t channels() const = 0;
  virtual std::int64_t height() const = 0;
  virtual std::int64_t width() const = 0;
  virtual bool labelled() const = 0;
  /// That of a picture; 0 where labelled() is false.
  virtual std::int32_t label(std::int64_t picture) const = 0;
  /// Pixels of a picture, [channels, height, width] row-major. From any thread. Errors: it cannot be
  /// read.
  virtual void read(std::int64_t picture, const PictureDraw& draw, std::span<float> out) const = 0;
  /// What its pictures and labels are, to know them again: XXH3-128.
  virtual std::string digest() const = 0;
  /// Files of the pictures, in order; empty: they have none of their own.
  virtual std::vector<std::string> files() const { return {}; }

  /// Reading takes the time of decoding, so that it is worth threads.
  virtual bool is_decoded() const { return false; }

  /// One more than the largest label.
  std::int64_t classes() const;
  bool of_one_class() const;
};

}  // namespace tessera
