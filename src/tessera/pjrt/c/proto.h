#pragma once
/// Writes protobuf's wire format, as far as options need it.
/// Source: protobuf's description of its encoding: a field is its number and kind as one varint, then
/// a varint, 8 bytes, or a length and bytes.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tessera::pjrt::c {

/// Seven bits a byte, the low ones first; the high bit says that more follow. Negative numbers take
/// ten bytes.
void put_varint(std::string& out, std::uint64_t value);
void put_number(std::string& out, int field, std::int64_t value);
void put_double(std::string& out, int field, double value);
void put_bytes(std::string& out, int field, std::string_view bytes);
/// A repeated field of numbers, packed.
void put_numbers(std::string& out, int field, std::span<const std::int64_t> values);

}  // namespace tessera::pjrt::c
