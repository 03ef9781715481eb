/// Pictures in JPEG and PNG: what is accepted has as many bytes as it says, twice the same.

#include "tessera/files/picture.h"

#include "fuzz/target.h"

namespace tessera::fuzz {

namespace {

constexpr std::int64_t kMostHere = 1 << 14;  // pixels: a few bytes may hold many more

void run(std::string_view input) {
  const Picture picture = decode_picture(input, "input", kMostHere);
  then([&] {
    check(picture.channels == 3 && picture.height * picture.width <= kMostHere &&
              std::ssize(picture.pixels) == picture.height * picture.width * 3,
          "pixels that are no picture");
    check(decode_picture(input, "input", kMostHere) == picture, "other pixels the second time");
    check(grey(picture).pixels.size() * 3 == picture.pixels.size(), "other pixels in grey");
  });
}

}  // namespace

const Target kTarget = {16 << 20, 4096, run};

}  // namespace tessera::fuzz
