#pragma once
/// The records of TensorBoard's event files.
///
/// Source: TFRecord framing and tensorflow/core/util/event.proto, framework/summary.proto. Of these
/// messages it makes the few fields that scalars need, so no protobuf library is needed.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tessera {

/// CRC-32C (Castagnoli), as of iSCSI: that of "123456789" is 0xe3069283.
std::uint32_t crc32c(std::string_view bytes);

/// As event files have it: a checksum over bytes that hold checksums is weak.
std::uint32_t masked_crc32c(std::string_view bytes);

/// `data` as a record: its length, the masked checksum of that, the bytes, and theirs.
std::string framed(std::string_view data);

struct ScalarValue {
  std::string tag;
  float value = 0;
};

// Events, not framed yet. Wall times are seconds since 1970.

/// What a file begins with.
std::string version_event(double wall_time);
/// Readers drop what they have of `step` and later ones: a run goes on from the step before.
std::string restart_event(double wall_time, std::int64_t step);
std::string scalars_event(double wall_time, std::int64_t step, std::span<const ScalarValue> values);

}  // namespace tessera
