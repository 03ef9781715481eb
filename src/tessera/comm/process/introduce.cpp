#include "tessera/comm/process/introduce.h"

#include <cerrno>
#include <cstring>
#include <span>

namespace tessera::process {

namespace {

std::span<const std::byte> bytes_of(const Said& said) { return std::as_bytes(std::span(&said, 1)); }

/// The next word as a reception, where it is not the one that goes on.
Reception other_word(const Socket& from, Word::Kind wanted, std::string& rest, Moment until) {
  Reception out;
  const bool whole = hear(from, out.word, rest, until, kMostOfUnproved);
  const int number = errno;
  const bool closed = number == 0 || number == ECONNRESET || number == EPIPE;
  if (out.word.kind == Word::Refusal) {
    out.how = Reception::Refused, out.reason = rest;
  } else if (!whole) {
    out.how = closed ? Reception::Closed : Reception::Broken, out.number = number;
  } else if (out.word.kind == wanted) {
    out.how = Reception::Welcome;
  } else {
    out.number = EPROTO;
  }
  return out;
}

/// Reads whether it did not fail.
Reception sent(bool whole) {
  Reception out;
  out.number = errno;
  out.how = whole                                             ? Reception::Welcome
            : out.number == ECONNRESET || out.number == EPIPE ? Reception::Closed
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

Reception introduce(const Socket& to, const Greeting& greeting, const Secret& secret,
                    Moment until) {
  Said said = {{greeting, draw_challenge()}, {}};
  Reception out = sent(send_all(to, &said.opening, sizeof(said.opening), until));
  if (out.how != Reception::Welcome) return out;
  std::string rest;
  out = other_word(to, Word::Answer, rest, until);
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
  out = other_word(to, Word::Welcome, rest, until);
  out.proved = true;
  return out;
}

}  // namespace tessera::process
