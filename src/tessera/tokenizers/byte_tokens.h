#pragma once
/// Bytes as tokens, in the manner of GPT-2. Ids 0 to 255 are the bytes that print (33 to 126, 161
/// to 172, 174 to 255), then the others. So vocab.json follows from merges.txt as it does there.

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

inline constexpr std::int64_t kByteTokens = 256;

/// The id of a byte, and the character that stands for it in merges: itself, or 256 + n of one that
/// does not print.
std::int32_t id_of_byte(unsigned char byte);
char32_t printed_byte(unsigned char byte);
/// Appends the bytes that such characters stand for; false, and nothing appended: one of them
/// stands for no byte.
bool append_printed_bytes(std::string_view printed, std::string& bytes);

}  // namespace tessera
