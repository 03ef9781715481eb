#pragma once
/// The room `serve`: a model answers other programs over HTTP, by the completions interface that
/// they know.
/// For: requests of strangers, each bounded in bytes, time and number, to texts of a TextModel.
/// Not for: which model and where it listens (apps).
/// Rejected: cpp-httplib. Debian's is a library that brings OpenSSL and brotli into every process
/// that links this one; in Python's, a second OpenSSL can make `import ssl` fail. It bounds neither
/// the lines of a head nor the time that one takes. What is needed of HTTP is small: one request for
/// each connection, with a length.
///
/// Why a request is refused, as its client hears it.

#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace tessera {

class ApiError : public std::exception {
 public:
  /// `param`: the field of the request, or empty. `code`: a word for programs, or empty.
  ApiError(int status, std::string message, std::string param = {}, std::string code = {})
      : status_(status),
        message_(std::move(message)),
        param_(std::move(param)),
        code_(std::move(code)) {}

  int status() const { return status_; }
  const char* what() const noexcept override { return message_.c_str(); }
  /// Fields of the reply, as {"Allow", "GET"}.
  std::vector<std::pair<std::string, std::string>> fields = {};
  /// {"error": {"message", "type", "param", "code"}}
  nlohmann::ordered_json json() const;

 private:
  int status_;
  std::string message_, param_, code_;
};

/// JSON in one line; what is no UTF-8 is replaced.
std::string dump(const nlohmann::ordered_json& json);

}  // namespace tessera
