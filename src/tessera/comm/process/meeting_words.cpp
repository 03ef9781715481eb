#include "tessera/comm/process/meeting_words.h"

#include <cerrno>

namespace tessera::process {

Word word_of(Word::Kind kind, Fault fault, bool speaks) {
  Word out;
  out.kind = kind, out.fault = static_cast<std::int32_t>(fault), out.speaks = speaks;
  return out;
}

bool say(const Socket& to, Word::Kind kind, const std::string& rest, Moment until, Fault fault,
         bool speaks) {
  Word word = word_of(kind, fault, speaks);
  word.bytes = static_cast<std::uint32_t>(rest.size());
  std::string all(reinterpret_cast<const char*>(&word), sizeof(word));
  all += rest;
  return send_all(to, all.data(), all.size(), until);
}

bool hear(const Socket& from, Word& word, std::string& rest, Moment until, std::uint32_t most) {
  if (!receive_all(from, &word, sizeof(word), until)) return false;
  if (word.magic != kMagic || word.bytes > most) {
    errno = EPROTO;
    return false;
  }
  rest.resize(word.bytes);
  return receive_all(from, rest.data(), rest.size(), until);
}

Fault fault_of(std::int32_t number) {
  const bool known =
      number >= static_cast<int>(Fault::Usage) && number <= static_cast<int>(Fault::Internal);
  return known ? static_cast<Fault>(number) : Fault::Peer;
}

}  // namespace tessera::process
