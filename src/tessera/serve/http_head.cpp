#include "tessera/serve/http_head.h"

#include <algorithm>
#include <charconv>

#include "tessera/base/text.h"
#include "tessera/serve/api_error.h"

namespace tessera {

namespace {

constexpr std::string_view kLineEnd = "\r\n";

bool is_name_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_name(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, is_name_letter);
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7f;
}

std::string lower(std::string_view word) {
  std::string out(word);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

/// "POST /v1/completions HTTP/1.1"
void read_request_line(std::string_view line, HttpHead& out) {
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == last || !is_name(line.substr(0, first)))
    throw ApiError(400, "the first line is no request of HTTP");
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0")
    throw ApiError(505, "this server speaks HTTP/1.1 and HTTP/1.0");
  if (!target.starts_with('/') ||
      !std::ranges::all_of(target, [](char c) { return c > ' ' && c < '\x7f'; }))
    throw ApiError(400, "the target of the request is no path");
  out.method = line.substr(0, first);
  out.path = target.substr(0, target.find('?'));
  out.minor = version.back() - '0';
}

}  // namespace

const std::string* HttpHead::find(std::string_view name) const {
  const auto found = std::ranges::find(fields, name, [](const auto& f) { return f.first; });
  return found == fields.end() ? nullptr : &found->second;
}

HttpHead parse_http_head(std::string_view bytes) {
  HttpHead out;
  bool first = true;
  while (!bytes.starts_with(kLineEnd)) {
    const std::size_t end = bytes.find(kLineEnd);
    if (end == std::string_view::npos) throw ApiError(400, "the head does not end");
    const std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(end + kLineEnd.size());
    if (std::ranges::any_of(line, is_control))
      throw ApiError(400, "a line of the head has a control character");
    if (std::exchange(first, false)) {
      read_request_line(line, out);
      continue;
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_name(line.substr(0, colon)))
      throw ApiError(400, "a line of the head is no field");
    const std::string name = lower(line.substr(0, colon));
    for (const char* once : {"authorization", "content-length", "host", "transfer-encoding"}) {
      if (name == once && out.find(name) != nullptr)
        throw ApiError(400, text("the head has ", name, " twice"));
    }
    out.fields.emplace_back(name, trim(line.substr(colon + 1)));
  }
  if (first) throw ApiError(400, "the first line is no request of HTTP");
  return out;
}

std::size_t body_bytes(const HttpHead& head, std::size_t most) {
  if (head.find("transfer-encoding") != nullptr)
    throw ApiError(411, "give the body with Content-Length, not with Transfer-Encoding");
  const std::string* const field = head.find("content-length");
  if (field == nullptr) throw ApiError(411, "a body needs Content-Length");
  std::size_t out = 0;
  const char* const end = field->data() + field->size();
  const auto [at, error] = std::from_chars(field->data(), end, out);
  const bool digits = !field->empty() && field->front() != '-' && at == end;
  if (!digits || error == std::errc::invalid_argument)
    throw ApiError(400, "Content-Length is no number");
  if (error == std::errc::result_out_of_range || out > most)
    throw ApiError(413, text("the body has more than ", most, " bytes"));
  return out;
}

}  // namespace tessera
