/// Manifests of checkpoints.

#include "fuzz/target.h"
#include "tessera/train/checkpoint_manifest.h"

namespace tessera::fuzz {

namespace {

/// A damaged manifest hardly ever has the right hash: it is given one, so that what reads behind
/// the seal is reached.
std::string sealed(std::string_view input) {
  const std::string_view object = trim(input);
  const bool can_be = object.size() > 2 && object.back() == '}';
  return can_be ? seal_manifest(object) : std::string(input);
}

void run(std::string_view input) {
  try {
    parse_manifest(input, "unsealed");
  } catch (const Error& error) {
    if (error.fault() == Fault::Internal) throw;
  }
  const Manifest manifest = parse_manifest(sealed(input), "input");
  then([&] {
    const std::string printed = to_text(manifest);
    check(parse_manifest(printed, "printed") == manifest, "reads back unequal: ", printed);
  });
}

}  // namespace

const Target kTarget = {1 << 20, 512, run};

}  // namespace tessera::fuzz
