import Basics
import Foundation
import KeychainFormats
import Testing

@Suite("Writing XML property lists")
struct XMLPlistTests {
  @Test("The document equals Apple's, and markup in strings is escaped")
  func document() throws {
    let value = PropertyValue.dictionary([
      "Device Name": .string("Ann & Bob's <phone>"), "Empty": .array([]), "GUID": .data([0, 1, 2, 253]),
      "Last Backup Date": .date(KeychainDate(secondsSinceReferenceDate: 86_400.75)),
      "List": .array([.boolean(true), .integer(-5), .real(0.5), .dictionary([:])]),
    ])
    let expected = """
      <?xml version="1.0" encoding="UTF-8"?>
      <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
      <plist version="1.0">
      <dict>
      \t<key>Device Name</key>
      \t<string>Ann &amp; Bob's &lt;phone&gt;</string>
      \t<key>Empty</key>
      \t<array/>
      \t<key>GUID</key>
      \t<data>AAEC/Q==</data>
      \t<key>Last Backup Date</key>
      \t<date>2001-01-02T00:00:00Z</date>
      \t<key>List</key>
      \t<array>
      \t\t<true/>
      \t\t<integer>-5</integer>
      \t\t<real>0.5</real>
      \t\t<dict/>
      \t</array>
      </dict>
      </plist>

      """
    #expect(String(decoding: try XMLPlist.encode(value), as: UTF8.self) == expected)
  }

  @Test("Foundation reads every value")
  func foundationReads() throws {
    let texts = ["", "]]>", "a\r\nb\tc", "\"'&lt;", "é🔑", " spaces "]
    for count in 0..<8 {
      let data = (0..<count).map { UInt8($0 * 37 % 256) }
      let value = PropertyValue.dictionary([
        "texts": .array(texts.map(PropertyValue.string)), "data": .data(data), "a & b": .unsignedInteger(.max),
      ])
      let decodedPlist = try PropertyListSerialization.propertyList(from: Data(try XMLPlist.encode(value)), format: nil)
      let root = try #require(decodedPlist as? [String: Any])
      #expect(root["texts"] as? [String] == texts)
      #expect(root["data"] as? Data == Data(data))
      #expect(root["a & b"] as? UInt64 == .max)
    }
  }

  @Test("Values and characters that XML cannot represent are rejected")
  func unencodable() {
    let values: [PropertyValue] = [
      .null, .uid(1), .set([]), .real(.infinity), .string("\u{0}"), .string("\u{1B}"), .string("\u{FFFE}"),
      .date(KeychainDate(secondsSinceReferenceDate: 1e20)),
      .dictionary(PropertyDictionary([.init(key: .integer(1), value: .integer(1))])),
    ]
    for value in values {
      #expect { try XMLPlist.encode(.array([value])) } throws: { ($0 as? FormatError)?.code == .unencodable }
    }
  }

  @Test("128 levels are written, and one more is rejected")
  func depth() throws {
    func nested(_ levels: Int) -> PropertyValue { (1..<levels).reduce(.array([])) { value, _ in .array([value]) } }
    #expect(try !XMLPlist.encode(nested(XMLPlist.maximumDepth)).isEmpty)
    #expect { try XMLPlist.encode(nested(XMLPlist.maximumDepth + 1)) } throws: {
      ($0 as? FormatError)?.code == .overLimit
    }
  }
}
