import Basics
import Foundation
import Testing

@testable import KeychainFormats

@Suite("JSON in chunks")
struct JSONStreamTests {
  private static let examples = [
    "", "plain", "a\"b", "\\", "ends in ü", "ü begins", "\u{1B}[2J", "tab\tand\r\n", "\u{202E}x", "\u{7F}", "日本❤️/",
    "x\u{E0041}y",
  ]

  @Test("Foundation reads every text, including texts from secure memory", arguments: examples)
  func texts(text: String) throws {
    let document: JSONValue = [
      "text": .string(text), "secret": .sensitive(SensitiveBytes(copying: Array(text.utf8)), .text),
    ]
    let decodedDocument = try JSONSerialization.jsonObject(with: Data(document.bytes())) as? [String: String]
    #expect(decodedDocument == ["text": text, "secret": text])
    #expect(document.bytes().allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x0A })
  }

  @Test("Bytes are written as the same base64 that Foundation writes", arguments: 0..<20)
  func base64(count: Int) throws {
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 * 37 + 200) }
    let text = JSONValue.sensitive(SensitiveBytes(copying: bytes), .base64).compactText()
    #expect(text == "\"\(Data(bytes).base64EncodedString())\"")
    #expect(Base64Digits.text(of: bytes) == Data(bytes).base64EncodedString())
  }

  /// The chunks of a document, joined.
  private struct WrittenDocument {
    private(set) var bytes: [UInt8] = []
    private(set) var largestChunk = 0

    mutating func append(_ chunk: UnsafeRawBufferPointer) {
      bytes += chunk
      largestChunk = max(largestChunk, chunk.count)
    }
  }

  private func makeElements(_ count: Int) -> [JSONValue] {
    (0..<count).map { .object([("number", .count($0)), ("half", ["x"])]) }
  }

  @Test("A long array that is written element by element gives the same document", arguments: [0, 1, 3, 4000])
  func chunks(count: Int) throws {
    let elements = makeElements(count)
    for finalMembers: [(String, JSONValue)] in [[], [("end", ["a": [1, 2]]), ("last", .null)]] {
      var output = WrittenDocument()
      var stream = JSONStream(["format": "test", "none": [], "parts": []])
      for element in elements { stream.append(element) { output.append($0) } }
      stream.end(finalMembers) { output.append($0) }
      let expected = JSONValue.object([("format", "test"), ("none", []), ("parts", .array(elements))] + finalMembers)
      #expect(output.bytes == expected.bytes())
      // A chunk ends after the element with which it has at least 32,768 bytes.
      #expect(output.largestChunk < 40_000)
    }
  }

  @Test("An array whose elements are created on demand gives the same document", arguments: [0, 1, 3, 4000])
  func onDemand(count: Int) throws {
    let elements = (0..<count).map {
      JSONValue.object([("number", .count($0)), ("half", .each(["x"]) { .string($0) })])
    }
    let onDemand: JSONValue = ["a": .each(Array(0..<count)) { elements[$0] }, "b": [1]]
    let expected: JSONValue = ["a": .array(elements), "b": [1]]

    var output = WrittenDocument()
    onDemand.forEachChunk { output.append($0) }

    #expect(output.bytes == expected.bytes())
    #expect(output.largestChunk < 40_000)
    #expect(onDemand.bytes() == expected.bytes())
    #expect(onDemand.compactText() == expected.compactText())
    #expect(onDemand == expected && expected == onDemand && onDemand["a"]?.arrayValue == elements)
    #expect(onDemand != ["a": .array(elements + [1]), "b": [1]])
    let decodedDocument = try #require(
      JSONSerialization.jsonObject(with: Data(output.bytes)) as? [String: Any])
    #expect((decodedDocument["a"] as? [[String: Any]])?.map { $0["number"] as? Int } == Array(0..<count))
  }

  @Test("No further element is created after the receiver throws")
  func stopped() {
    struct StopRequest: Error {}
    let createdCount = Locked(0)
    let document = JSONValue.each(Array(0..<100_000)) { number in
      createdCount.withLock { $0 += 1 }
      return .count(number)
    }
    #expect(throws: StopRequest.self) { try document.forEachChunk { (_) throws(StopRequest) in throw StopRequest() } }
    // The first chunk, of 32,768 bytes, has fewer elements than this.
    #expect(createdCount.withLock { $0 } < 10_000)
  }

  @Test("A nested array that is written element by element gives the same document", arguments: [0, 1, 3])
  func nested(count: Int) {
    let elements = makeElements(count)
    func document(_ parts: [JSONValue]) -> JSONValue {
      ["format": "test", "groups": [["first"], ["name": "a", "none": [], "parts": .array(parts)]]]
    }
    for finalMembers: [(String, JSONValue)] in [[], [("end", ["a": [1, 2]])]] {
      var bytes: [UInt8] = []
      var stream = JSONStream(document([]))
      for element in elements { stream.append(element) { bytes += $0 } }
      stream.end(finalMembers) { bytes += $0 }
      #expect(bytes == document(elements).adding(finalMembers).bytes())
    }
  }
}
