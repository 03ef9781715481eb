#include "tessera/comm/process/tcp/introduce.h"

#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

namespace tessera::process {

namespace {

std::span<const std::byte> bytes_of(const Said& said) { return std::as_bytes(std::span(&said, 1)); }

/// A word that was heard as a reception, where it is not the one that goes on.
Reception received(bool whole, const Word& word, Word::Kind wanted, const std::string& rest) {
  const int number = errno;
  Reception out;
  const bool closed = number == 0 || number == ECONNRESET || number == EPIPE;
  out.word = word;
  if (word.kind == Word::Refusal) {
    out.how = Reception::Refused, out.reason = rest;
  } else if (!whole) {
    out.how = closed ? Reception::Closed : Reception::Broken, out.number = number;
  } else if (word.kind == wanted) {
    out.how = Reception::Welcome;
  } else {
    out.number = EPROTO;
  }
  return out;
}

/// Reads whether it did not fail.
Reception sent(bool whole) {
  const int number = errno;
  Reception out;
  out.number = number;
  out.how = whole                                     ? Reception::Welcome
            : number == ECONNRESET || number == EPIPE ? Reception::Closed
                                                      : Reception::Broken;
  return out;
}

}  // namespace

Proof Said::proof_of_caller(const Secret& secret) const {
  return secret.proof("caller", bytes_of(*this));
}

Proof Said::proof_of_listener(const Secret& secret) const {
  return secret.proof("listener", bytes_of(*this));
}

Secret Said::key(const Secret& secret) const {
  const Proof of = secret.proof("words", bytes_of(*this));
  return Secret({reinterpret_cast<const char*>(of.data()), of.size()});
}

Reception introduce(Socket to, const Greeting& greeting, const Secret& secret, Moment until) {
  Said said = {{greeting, draw_challenge(), plain(other_end(to))}, {}};
  Reception out = sent(send_all(to, &said.opening, sizeof(said.opening), until));
  if (out.how != Reception::Welcome) return out;
  Word word;
  std::string rest;
  bool whole = hear(to, word, rest, until, kMostOfUnproved);
  out = received(whole, word, Word::Answer, rest);
  if (out.how != Reception::Welcome) return out;
  Response answer;
  if (rest.size() != sizeof(answer)) {
    out.how = Reception::Broken, out.number = EPROTO;
    return out;
  }
  std::memcpy(&answer, rest.data(), sizeof(answer));
  said.answer = answer.challenge;
  // Also to one that has not proved itself: it says there that this rank was given another secret.
  const Proof own = said.proof_of_caller(secret);
  out = sent(send_all(to, &own, sizeof(own), until));
  if (!Secret::same(answer.proof, said.proof_of_listener(secret))) out.how = Reception::Unknown;
  if (out.how != Reception::Welcome) return out;
  Line line(std::move(to), said.key(secret), Line::Side::Caller);
  whole = line.hear(word, rest, until);
  out = received(whole, word, Word::Welcome, rest);
  out.proved = true;
  out.line = std::move(line);
  return out;
}

}  // namespace tessera::process
