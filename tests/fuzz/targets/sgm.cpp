/// The .sgm files of WMT.

#include "tessera/corpora/sgm.h"

#include "fuzz/target.h"
#include "tessera/base/utf8.h"

namespace tessera::fuzz {

namespace {

void run(std::string_view input) {
  const SgmSet set = parse_sgm(input, "input");
  then([&] {
    for (const SgmDocument& document : set.documents) {
      for (const SgmSegment& segment : document.segments) {
        check(find_invalid_utf8(segment.text) == std::string_view::npos, "a segment is not UTF-8");
        check(one_blank(segment.text) == segment.text, "a segment has white space left");
      }
    }
  });
}

}  // namespace

const Target kTarget = {1 << 20, 256, run};

}  // namespace tessera::fuzz
