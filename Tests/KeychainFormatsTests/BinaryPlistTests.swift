import Basics
import Foundation
import KeychainFormats
import TestSupport
import Testing

@Suite("Binary property lists")
struct BinaryPlistTests {
  static let everything = PropertyValue.dictionary([
    "true": .boolean(true), "false": .boolean(false),
    "numbers": .array(
      [0, 1, 255, 256, 65_535, 65_536, 4_294_967_295, 4_294_967_296, .max, -1, -129, .min].map(PropertyValue.integer)),
    "large": .unsignedInteger(.max), "real": .real(-0.1), "date": .date(KeychainDate(secondsSinceReferenceDate: 0.5)),
    "empty": .array([.data([]), .string(""), .array([]), .dictionary([:])]),
    "data": .data([UInt8](repeating: 7, count: 300)), "text": .string("Schlüssel 🔑 \u{65}\u{301} \u{E9}"),
    "long": .string(String(repeating: "x", count: 15)), "twice": .array([.string("x"), .string("x")]),
    "decomposed": .string("e\u{301}"), "composed": .string("\u{E9}"),
  ])

  @Test("Foundation reads every value that the writer writes")
  func foundationReads() throws {
    let bytes = try BinaryPlist.encode(Self.everything)
    let plist = try PropertyListSerialization.propertyList(from: Data(bytes), format: nil)
    let root = try #require(plist as? [String: Any])
    #expect(root["true"] as? Bool == true)
    #expect(
      root["numbers"] as? [Int64] == [
        0, 1, 255, 256, 65_535, 65_536, 4_294_967_295, 4_294_967_296, .max, -1, -129, .min,
      ])
    #expect(root["real"] as? Double == -0.1)
    #expect((root["date"] as? Date)?.timeIntervalSinceReferenceDate == 0.5)
    #expect(root["data"] as? Data == Data(repeating: 7, count: 300))
    #expect(root["text"] as? String == "Schlüssel 🔑 \u{65}\u{301} \u{E9}")
    #expect((root["decomposed"] as? String)?.unicodeScalars.count == 2)
    #expect((root["composed"] as? String)?.unicodeScalars.count == 1)
    #expect((root["long"] as? String)?.count == 15)
    #expect((root["empty"] as? [Any])?.count == 4)
  }

  @Test("The reader reads every value that Foundation writes")
  func foundationWrites() throws {
    let source: [String: Any] = [
      "true": true, "numbers": [0, 255, 65_536, 4_294_967_296, -1, Int64.min], "real": 1.5, "text": "日本語 🔑",
      "date": Date(timeIntervalSinceReferenceDate: -5), "data": Data([1, 2, 3]), "ascii": "plain",
      "nested": ["a": [["b": ["c"]]]], "many": (0..<600).map { "item \($0)" },
    ]
    let data = try PropertyListSerialization.data(fromPropertyList: source, format: .binary, options: 0)
    let root = try #require(try BinaryPlist.decode(Array(data)).dictionaryValue)
    #expect(root["true"] == .boolean(true))
    #expect(root["numbers"] == .array([0, 255, 65_536, 4_294_967_296, -1, .min].map(PropertyValue.integer)))
    #expect(root["real"] == .real(1.5))
    #expect(root["text"] == .string("日本語 🔑"))
    #expect(root["date"]?.dateValue?.secondsSinceReferenceDate == -5)
    #expect(root["data"] == .data([1, 2, 3]))
    #expect(root["nested"] == .dictionary(["a": .array([.dictionary(["b": .array([.string("c")])])])]))
    #expect(root["many"]?.arrayValue?.last == .string("item 599"))
    #expect(root.entries.count == 9)
  }

  @Test("Every type of value survives a round trip, including references and sets")
  func roundTrip() throws {
    let values: [PropertyValue] = [
      Self.everything, .uid(0), .uid(255), .uid(65_536), .uid(.max), .set([.integer(1)]), .string("\u{7F}\u{80}"),
      .array((0..<70_000).map { .integer(Int64($0)) }), .boolean(false),
    ]
    for value in values { #expect(try BinaryPlist.decode(BinaryPlist.encode(value)) == value) }
  }

  @Test("Equal strings are stored once, and strings with different bytes separately")
  func sharedTexts() throws {
    let text = String(repeating: "long text ", count: 20)
    let byteCountOfOneString = try BinaryPlist.encode(.array([.string(text)])).count
    // The second string is a reference of one byte.
    #expect(try BinaryPlist.encode(.array([.string(text), .string(text)])).count == byteCountOfOneString + 1)
    let forms = try BinaryPlist.decode(BinaryPlist.encode(.array([.string("e\u{301}"), .string("\u{E9}")])))
    #expect(forms.arrayValue?.compactMap { $0.stringValue?.unicodeScalars.count } == [2, 1])
  }

  @Test("The bytes of a small property list match the published format")
  func bytes() throws {
    let expected = try [UInt8](
      hex: "62706c6973743030 5161 1001 d1 00 01 08 0a 0c 000000000000 01 01"
        + "0000000000000003 0000000000000002 000000000000000f")
    #expect(try BinaryPlist.encode(.dictionary(["a": .integer(1)])) == expected)
  }

  @Test("A null cannot be written to a binary property list")
  func unencodable() {
    #expect { try BinaryPlist.encode(.array([.null])) } throws: { ($0 as? FormatError)?.code == .unencodable }
  }
}
