import Basics
import Foundation
import TestSupport
import Testing

@testable import KeychainFormats

@Suite("Reading JSON")
struct JSONReadingTests {
  private func parse(_ text: String) throws -> JSONValue { try JSONValue(parsing: Array(text.utf8)) }

  @Test("A round trip preserves a document, with exact integers and the order of members")
  func roundTrip() throws {
    let value = JSONValue.object([
      ("b", .array([.integer(1), .integer(.min), .number(2.5), .number(1e300), .boolean(true), .null, .object([])])),
      ("a", .string("\u{1B}[31m \"q\" \\ ü \u{1F511}\n\u{0}\u{202E}\u{2028}")), ("", .array([])),
    ])
    for text in [value.text(), value.compactText(), String(decoding: value.bytes(), as: UTF8.self)] {
      let reparsed = try parse(text)
      #expect(reparsed == value)
      #expect(reparsed.fields?.map(\.0) == ["b", "a", ""])
      // Foundation reads the same value.
      let foundation = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
      #expect(foundation?["a"] as? String == value["a"]?.stringValue)
    }
  }

  @Test("Every form of value in the standard is read")
  func forms() throws {
    let text = #" { "\u0041\/\b\f\n\r\t\"\\" : [ -0 , 1E2, 0.5e-1, "\ud83d\udd11", 9223372036854775808, [ ], { } ] } "#
    #expect(
      try parse(text) == [
        "A/\u{8}\u{C}\n\r\t\"\\": [
          0, .number(100), .number(0.05), "\u{1F511}", .number(9_223_372_036_854_775_808), [], .object([]),
        ]
      ])
  }

  @Test(
    "Text that is not JSON is rejected",
    arguments: [
      "", "{", "[1 2]", "01", "+1", ".5", "1.", "1e", "-", "nul", "nulls", "\"\\x\"", "\"\\ud83d\"", "\"\\udd11\"",
      "\"\\ud83d\\u0041\"", "\"\\u00g0\"", "\"\\u00\"", "\"", "\"\n\"", "[1] 2", "{1:2}", "{\"a\" 1}", "{\"a\":1,}",
      "[1,]",
      "[,]", "'a'", "1e999", "{\"a\":1,\"a\":1}", "\u{FEFF}", "\u{FEFF}\u{FEFF}1", "1\u{FEFF}",
      String(repeating: "[", count: 100_000),
    ])
  func refused(_ text: String) { #expect(throws: JSONParseError.self) { try parse(text) } }

  @Test("A document that is not UTF-8 is rejected, including a truncated character")
  func notUTF8() {
    for bytes in [[0x22, 0xFF, 0x22], [0x22, 0xC3, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22]] as [[UInt8]] {
      #expect(throws: JSONParseError.self) { try JSONValue(parsing: bytes) }
    }
  }

  @Test("A byte order mark before a document is skipped, and does not count as a column")
  func byteOrderMark() throws {
    #expect(try parse("\u{FEFF} [1]") == [1])
    let fault = #expect(throws: JSONParseError.self) { try parse("\u{FEFF}[?]") }
    #expect(fault?.location(in: Array("\u{FEFF}[?]".utf8)) == "line 1, column 2")
    #expect(JSONValue.line(of: [.element(0)], in: Array("\u{FEFF}[\n1]".utf8)) == 2)
  }

  @Test("A document with the maximum nesting is read, and one more level is rejected")
  func depth() throws {
    func nested(_ depth: Int) -> String {
      String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
    }
    _ = try parse(nested(JSONValue.maximumDepth))
    let fault = #expect(throws: JSONParseError.self) { try parse(nested(JSONValue.maximumDepth + 1)) }
    #expect(fault?.reason == "it is nested more than 100 deep")
  }

  @Test("An error contains the line and the column")
  func location() throws {
    for (text, location) in [
      ("", "line 1, column 1"), ("x", "line 1, column 1"), ("{\n  \"é\": ?}", "line 2, column 8"),
      ("[1,\n2\n\n] ]", "line 4, column 3"), ("{\"a\":1,\"a\":2}", "line 1, column 11"),
    ] {
      let bytes = Array(text.utf8)
      let fault = try #require(#expect(throws: JSONParseError.self) { try JSONValue(parsing: bytes) })
      #expect(fault.location(in: bytes) == location, "\(text)")
    }
  }

  @Test("A document with the maximum number of values is read, and one more value is rejected")
  func count() throws {
    let bytes = Array("[1,[2],{\"a\":3}]".utf8)
    _ = try JSONValue(parsing: bytes, acceptingAtMost: 6)
    let fault = #expect(throws: JSONParseError.self) { try JSONValue(parsing: bytes, acceptingAtMost: 5) }
    #expect(fault?.reason == "it has more values than Keyhaul reads")
  }

  private func parseLazily(_ text: String, atMost limit: Int = 100) throws -> JSONValue {
    try JSONValue(parsing: Array(text.utf8), acceptingAtMost: limit, decodingLazily: "items")
  }

  @Test("Elements that are parsed on demand give the same document")
  func lazyElements() throws {
    let text =
      #"{"a": {"items": [1]}, "items": [ 1, "é\n\u0041" ,{"b":[[2]]},[],{"items":[3]} ], "c": {"items":[4]}}"#
    let value = try parseLazily(text)
    #expect(try value == parse(text))
    guard case .elements(5, let element) = value["items"] else {
      Issue.record("the elements are not parsed on demand")
      return
    }
    #expect(element(2) == ["b": [[2]]] && element(1) == "é\nA" && element(2) == ["b": [[2]]])
    // Only an array that is a member of the root object is parsed on demand.
    for otherObject in [value["a"], value["c"], element(4)] {
      guard case .array? = otherObject?["items"] else {
        Issue.record("the items of another object are parsed on demand")
        continue
      }
    }
    for text in [#"{"items": {"a": [1]}}"#, #"{"items": null}"#, #"{"items":[]}"#, #"[{"items":[1,2]}]"#, "1"] {
      #expect(try parseLazily(text) == parse(text))
    }
  }

  @Test(
    "A document with on-demand elements is rejected for the same reason at the same offset",
    arguments: [
      #"{"items": [1, ?]}"#, #"{"items": [1,]}"#, #"{"items": [1"#, #"{"items": [1], "items": [2]}"#,
      #"{"items": [{"a":1,"a":2}]}"#,
      #"{"items": [1, 1e999]}"#, #"{"items": [1] 2}"#, #"{"items": [1]} 2"#, #"{"items": ["\x"]}"#,
    ])
  func lazyRefusals(_ text: String) throws {
    let fault = try #require(#expect(throws: JSONParseError.self) { try parse(text) })
    #expect(throws: fault) { try parseLazily(text) }
  }

  @Test("Elements that are parsed on demand count towards the limits of values and nesting")
  func lazyLimits() throws {
    let text = #"{"items": [[1], 2]}"#
    #expect(try parseLazily(text, atMost: 5) == parse(text))
    #expect(throws: JSONParseError.self) { try parseLazily(text, atMost: 4) }
    func nested(_ depth: Int) -> String {
      let brackets = String(repeating: "[", count: depth - 1) + String(repeating: "]", count: depth - 1)
      return "{\"items\": \(brackets)}"
    }
    let deepest = nested(JSONValue.maximumDepth)
    #expect(try parseLazily(deepest, atMost: 1000) == parse(deepest))
    #expect(throws: JSONParseError.self) { try parseLazily(nested(JSONValue.maximumDepth + 1), atMost: 1000) }
  }

  @Test("The reader agrees with Foundation about 2,000 documents of random JSON characters")
  func random() throws {
    var random = SeededRandom(seed: 21)
    let letters = Array("[]{},:\"\\\\u0041ed83truefalsnl-+.19 \n")
    var accepted = 0
    for _ in 0..<2000 {
      let text =
        "["
        + String(
          (0..<Int.random(in: 0...6, using: &random)).map { _ in
            letters[Int.random(in: 0..<letters.count, using: &random)]
          }) + "]"
      let value = try? parse(text)
      let foundationValue = try? JSONSerialization.jsonObject(with: Data(text.utf8))
      // Foundation accepts a comma before a bracket, which the standard does not.
      #expect((value == nil) == (foundationValue == nil) || value == nil && text.contains(/,\s*[\]}]/), "\(text)")
      if value != nil { accepted += 1 }
    }
    #expect(accepted > 20)
  }
}

@Suite("Writing JSON")
struct JSONWritingTests {
  @Test("A secret is written like any other string, as text or base64")
  func sensitive() throws {
    for text in ["", "f", "fo", "foo", "päss\"w\\ord\n\u{1B}\u{202E}\u{1F511}", String(repeating: "x", count: 10_000)] {
      let bytes = Array(text.utf8)
      let secret = SensitiveBytes(copying: bytes)
      let value: JSONValue = ["a": .sensitive(secret, .text), "b": .sensitive(secret, .base64)]
      let plain: JSONValue = ["a": .string(text), "b": .string(Data(bytes).base64EncodedString())]
      #expect(value.text() == plain.text())
      #expect(value == value && value != plain)
    }
  }

  @Test("Writing to a wiped buffer gives the same bytes with a newline")
  func buffer() {
    let value: JSONValue = ["a": [1, nil, true, .number(.infinity)], "b": .object([]), "c": "ü"]
    var buffer = SensitiveBuffer()
    value.write(to: &buffer)
    let text = """
      {
        "a": [
          1,
          null,
          true,
          null
        ],
        "b": {},
        "c": "ü"
      }

      """
    #expect(buffer.withBytes { String(decoding: $0, as: UTF8.self) } == text)
    #expect(value.text(indentedBy: 4) == String(text.dropLast()).replacing("\n", with: "\n    "))
    #expect(value.compactText() == "{\"a\":[1,null,true,null],\"b\":{},\"c\":\"ü\"}")
  }

  @Test("Members without an order are written in the order of their names")
  func order() {
    var members = JSONObject()
    members["b"] = 2
    members["a"] = 1
    #expect(JSONValue.sorted(members).compactText() == "{\"a\":1,\"b\":2}")
    #expect(JSONValue.sorted(members) == ["b": 2, "a": 1])
  }
}
