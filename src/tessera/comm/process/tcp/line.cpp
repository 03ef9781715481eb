#include "tessera/comm/process/tcp/line.h"

#include <algorithm>
#include <cerrno>
#include <span>

#include "tessera/base/text.h"

namespace tessera::process {

namespace {

Line::Side other(Line::Side side) {
  return side == Line::Side::Caller ? Line::Side::Listener : Line::Side::Caller;
}

/// As it is written, with a place for the hash at its end.
std::string hashed_bytes(Word word, const std::string& rest) {
  word.bytes = static_cast<std::uint32_t>(rest.size() + sizeof(Proof));
  return std::string(reinterpret_cast<const char*>(&word), sizeof(word)) + rest;
}

}  // namespace

Proof Line::proof(Side speaker, std::uint64_t before, const std::string& word) const {
  const std::string who = speaker == Side::Caller ? "caller" : "listener";
  return key_.proof(text(who, " ", before), std::as_bytes(std::span(word)));
}

bool Line::say(Word::Kind kind, const std::string& rest, Moment until, Fault fault, bool speaks) {
  std::string all = hashed_bytes(word_of(kind, fault, speaks), rest);
  const Proof own = proof(side_, said_++, all);
  all.append(reinterpret_cast<const char*>(own.data()), own.size());
  return send_all(socket_, all.data(), all.size(), until);
}

bool Line::hear(Word& word, std::string& rest, Moment until) {
  bool whole = process::hear(socket_, word, rest, until);
  if (!whole && errno == EPROTO) errno = EBADMSG;
  if (whole) {
    Proof theirs = {};
    const std::size_t words = rest.size() - std::min(rest.size(), sizeof(theirs));
    std::ranges::copy(rest.substr(words), theirs.begin());
    rest.resize(words);
    whole = Secret::same(theirs, proof(other(side_), heard_++, hashed_bytes(word, rest)));
    if (!whole) errno = EBADMSG;
  }
  if (!whole) word = {}, rest.clear();
  return whole;
}

std::string changed_text(const std::string& who) {
  return text("what came from ", who,
              " was changed on its way: use a network that others cannot change, or a tunnel");
}

std::vector<Socket> sockets_of(std::vector<Line>& ranks) {
  std::vector<Socket> out;
  for (Line& rank : ranks) out.push_back(rank.release());
  return out;
}

}  // namespace tessera::process
