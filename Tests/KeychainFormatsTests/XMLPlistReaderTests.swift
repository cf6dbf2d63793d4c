import Basics
import TestSupport
import Testing

@testable import KeychainFormats

@Suite("Reading XML property lists")
struct XMLPlistReaderTests {
  private func decode(_ text: String) throws(FormatError) -> PropertyValue { try XMLPlist.decode(Array(text.utf8)) }

  private func body(_ element: String) throws(FormatError) -> PropertyValue {
    try decode("<plist version=\"1.0\">\(element)</plist>")
  }

  private func errorCode(_ text: String) -> FormatError.Code? {
    do throws(FormatError) {
      _ = try decode(text)
      return nil
    } catch {
      return error.code
    }
  }

  @Test("A round trip preserves every value")
  func roundTrip() throws {
    let value = PropertyValue.dictionary([
      "text": .string("Ann & Bob's <phone>\r\n\t\u{1F4F1}"), "empty": .string(""), "data": .data([0, 1, 2, 253, 254]),
      "no data": .data([]), "date": .date(KeychainDate(secondsSinceReferenceDate: 86_400)), "yes": .boolean(true),
      "no": .boolean(false), "small": .integer(.min), "large": .unsignedInteger(.max), "real": .real(-0.5),
      "list": .array([.dictionary([:]), .array([]), .integer(7)]),
    ])
    #expect(try XMLPlist.decode(try XMLPlist.encode(value)) == value)
  }

  @Test("The forms that other programs write are read")
  func forms() throws {
    let text = """
      \u{FEFF}<?xml version='1.0'?> <!-- a > comment -->
      <!DOCTYPE plist SYSTEM "file://localhost/a>b.dtd" >
      <plist><dict ><key>a</key><string>x<![CDATA[<&>]]>y<!-- no -->&#65;&#x1F600;&quot;</string>
      <key>b</key><integer> +12 </integer><key>c</key><integer>-0x10</integer>
      <key>d</key><data>\n\tAAE C\n</data><key>a</key><true></true><key>e</key><string/></dict></plist><!-- end -->\n
      """
    #expect(
      try decode(text)
        == .dictionary([
          "a": .string("x<&>yA\u{1F600}\""), "b": .integer(12), "c": .integer(-16), "d": .data([0, 1, 2]),
          "e": .string(""),
        ]))
  }

  @Test("Entities and declarations are rejected, so nothing is expanded or fetched")
  func entities() {
    #expect(errorCode("<!DOCTYPE plist [<!ENTITY a \"aaaa\">]><plist><string>&a;</string></plist>") == .forbidden)
    #expect(
      errorCode("<!DOCTYPE plist SYSTEM \"x\" [<!ENTITY % p SYSTEM \"file:///etc/passwd\"> %p;]><plist/>") == .forbidden
    )
    #expect(errorCode("<plist><string>&other;</string></plist>") == .forbidden)
    #expect(errorCode("<plist><string>&#0;</string></plist>") == .malformed)
    #expect(errorCode("<plist><string>&#xD800;</string></plist>") == .malformed)
    #expect(errorCode("<plist><string>&#x110000;</string></plist>") == .malformed)
    #expect(errorCode("<plist><string>&amp</string></plist>") == .malformed)
  }

  @Test(
    "An incomplete document, or one that is not a property list, is rejected",
    arguments: [
      "<plist>", "<plist/>", "<dict/>", "<plist></plist>", "<plist><dict></plist>",
      "<plist><dict><key>a</key></dict></plist>",
      "<plist><dict><true/></dict></plist>", "<plist><array><true/></dict></plist>", "<plist><other/></plist>",
      "<plist><integer>1.5</integer></plist>", "<plist><integer>99999999999999999999</integer></plist>",
      "<plist><integer>-9223372036854775809</integer></plist>", "<plist><integer></integer></plist>",
      "<plist><real>x</real></plist>", "<plist><date>2024-13-01T00:00:00Z</date></plist>",
      "<plist><data>A</data></plist>",
      "<plist><data>AA=A</data></plist>", "<plist><data>?</data></plist>", "<plist><string>a</plist>",
      "<plist><string>a<b/></string></plist>", "<plist><true/>", "<plist><true", "<plist attribute=\"", "<!-- ", "<",
      "",
      "<plist>text<true/></plist>",
    ])
  func faults(text: String) {
    let code = errorCode(text)
    #expect(code == .malformed || code == .truncated, "\(String(describing: code))")
  }

  @Test("Bytes after the end, and bytes that are not UTF-8, are rejected")
  func ends() {
    #expect(errorCode("<plist><true/></plist>more") == .trailingBytes)
    #expect(throws: FormatError.self) {
      try XMLPlist.decode(Array("<plist><string>".utf8) + [0xFF] + Array("</string></plist>".utf8))
    }
  }

  @Test("A document with the maximum number of levels is read, and one more level is rejected")
  func depth() throws {
    func nested(_ count: Int) -> String {
      String(repeating: "<array>", count: count) + String(repeating: "</array>", count: count)
    }
    _ = try body(nested(XMLPlist.maximumDepth))
    #expect(errorCode("<plist>\(nested(XMLPlist.maximumDepth + 1))</plist>") == .overLimit)
  }

  @Test("A document with the maximum number of elements is read, and one more element is rejected")
  func elements() throws {
    // The eight elements are plist, dict, key, array and four values.
    let values = "<true/><true></true><string>b</string><integer>1</integer>"
    let document = Array("<plist><dict><key>a</key><array>\(values)</array></dict></plist>".utf8)
    _ = try XMLPlist.decode(document, maximumElementCount: 8)
    let error = #expect(throws: FormatError.self) { try XMLPlist.decode(document, maximumElementCount: 7) }
    #expect(error?.code == .overLimit && error?.reason.hasPrefix("more than 7 elements") == true)
    #expect(XMLPlist.maximumElementCount == 1_000_000)
  }

  @Test("Truncating a document or flipping any of its bits gives an error or a value, and never a crash")
  func damage() throws {
    let value = PropertyValue.dictionary(["a": .array([.string("&x"), .data([1, 2]), .integer(-3), .boolean(true)])])
    readDamagedVariants(of: try XMLPlist.encode(value)) { _ = try? XMLPlist.decode($0) }
  }
}
