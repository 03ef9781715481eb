#include "tessera/serve/http_head.h"

#include <gtest/gtest.h>

#include "tessera/serve/api_error.h"

namespace tessera {
namespace {

const std::string kPost = "POST /v1/completions?x=1 HTTP/1.1\r\n";

TEST(HttpHead, FieldsByName) {
  const HttpHead head =
      parse_http_head(kPost + "Host: here\r\nContent-LENGTH:  12 \r\nX-Empty:\r\n\r\n");
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.path, "/v1/completions");
  EXPECT_EQ(head.minor, 1);
  ASSERT_NE(head.find("content-length"), nullptr);
  EXPECT_EQ(*head.find("content-length"), "12");
  EXPECT_EQ(*head.find("x-empty"), "");
  EXPECT_EQ(head.find("x"), nullptr);
  EXPECT_EQ(body_bytes(head, 12), 12u);
  EXPECT_EQ(parse_http_head("GET / HTTP/1.0\r\n\r\n").minor, 0);
}

struct RefusedHead {
  const char* why;
  std::string bytes;
  int status;
};

TEST(HttpHead, WhatIsNoHeadIsRefused) {
  const RefusedHead cases[] = {
      {"nothing", "\r\n", 400},
      {"no end", "GET / HTTP/1.1\r\nHost: x\r\n", 400},
      {"one word", "GET\r\n\r\n", 400},
      {"two words", "GET /\r\n\r\n", 400},
      {"a method that is no word", "G@T / HTTP/1.1\r\n\r\n", 400},
      {"another protocol", "GET / HTTP/2.0\r\n\r\n", 505},
      {"a whole address, as of a proxy", "GET http://x/ HTTP/1.1\r\n\r\n", 400},
      {"a blank in the path", "GET /a b HTTP/1.1\r\n\r\n", 400},
      {"bytes above ASCII in the path", "GET /\xC3\xA9 HTTP/1.1\r\n\r\n", 400},
      {"NUL", std::string("GET / HTTP/1.1\r\nA: b\0c\r\n\r\n", 27), 400},
      {"a line that ends with LF alone", "GET / HTTP/1.1\nHost: x\r\n\r\n", 400},
      {"a field that goes on", "GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", 400},
      {"a field without a colon", "GET / HTTP/1.1\r\nHost\r\n\r\n", 400},
      {"a blank before the colon", "GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400},
      {"two lengths", kPost + "Content-Length: 1\r\ncontent-length: 2\r\n\r\n", 400},
      {"two hosts", kPost + "Host: a\r\nHost: b\r\n\r\n", 400},
  };
  for (const RefusedHead& c : cases) {
    SCOPED_TRACE(c.why);
    try {
      parse_http_head(c.bytes);
      ADD_FAILURE() << "taken";
    } catch (const ApiError& error) {
      EXPECT_EQ(error.status(), c.status) << error.what();
    }
  }
}

TEST(HttpHead, LengthsOfBodies) {
  const RefusedHead cases[] = {
      {"no length", "", 411},
      {"in chunks", "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", 411},
      {"empty", "Content-Length:\r\n", 400},
      {"negative", "Content-Length: -1\r\n", 400},
      {"a sign", "Content-Length: +1\r\n", 400},
      {"two numbers", "Content-Length: 1, 1\r\n", 400},
      {"hexadecimal", "Content-Length: 0x1\r\n", 400},
      {"one too many", "Content-Length: 101\r\n", 413},
      {"more than a number has", "Content-Length: 99999999999999999999999\r\n", 413},
  };
  for (const RefusedHead& c : cases) {
    SCOPED_TRACE(c.why);
    try {
      body_bytes(parse_http_head(kPost + c.bytes + "\r\n"), 100);
      ADD_FAILURE() << "taken";
    } catch (const ApiError& error) {
      EXPECT_EQ(error.status(), c.status) << error.what();
    }
  }
}

}  // namespace
}  // namespace tessera
