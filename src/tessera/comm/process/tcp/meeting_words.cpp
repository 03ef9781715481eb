#include "tessera/comm/process/tcp/meeting_words.h"

#include <cerrno>
#include <cstring>

#include "tessera/base/error.h"

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
  if (!is_word(word, most)) {
    errno = EPROTO;
    return false;
  }
  rest.resize(word.bytes);
  return receive_all(from, rest.data(), rest.size(), until);
}

bool is_word(const Word& word, std::uint32_t most) {
  return word.magic == kMagic && word.bytes <= most;
}

std::string to_text(const Table& table) {
  std::string out(reinterpret_cast<const char*>(&table.world), sizeof(table.world));
  out.append(reinterpret_cast<const char*>(table.listens.data()),
             table.listens.size() * sizeof(Endpoint));
  return out;
}

Table read_table(std::string_view bytes, int rank, int ranks, const std::string& who) {
  Table out;
  out.listens.resize(static_cast<std::size_t>(ranks));
  const std::size_t right = sizeof(out.world) + out.listens.size() * sizeof(Endpoint);
  if (bytes.size() != right)
    fail(Fault::Peer, who, " got a table of ", bytes.size(), " bytes from rank 0, but expects ",
         right, "; start the same program on all ranks");
  std::memcpy(&out.world, bytes.data(), sizeof(out.world));
  std::memcpy(out.listens.data(), bytes.data() + sizeof(out.world), right - sizeof(out.world));
  for (std::size_t r = 1; r < static_cast<std::size_t>(rank); ++r)
    if (!out.listens[r].valid())
      fail(Fault::Peer, who, " got a table from rank 0 without an address of rank ", r,
           "; start the same program on all ranks");
  return out;
}

Fault fault_of(std::int32_t number) {
  const bool known =
      number >= static_cast<int>(Fault::Usage) && number <= static_cast<int>(Fault::Internal);
  return known ? static_cast<Fault>(number) : Fault::Peer;
}

}  // namespace tessera::process
