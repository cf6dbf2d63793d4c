import Basics
import Foundation
import KeychainFormats
import TestSupport
import Testing

@Suite("Apple's published DER property lists")
struct DERVectorTests {
  @Test("Every value of der_plist is encoded to Apple's bytes and decoded again")
  func propertyLists() throws {
    for vector in try TestVectors.list("der_plist") {
      let value = try Self.value(of: vector)
      let der = try vector["der"].bytes
      #expect(try DERPropertyList.encode(value).hex == der.hex)
      #expect(try DERPropertyList.encode(DERPropertyList.decode(der)).hex == der.hex)
      // The entries of a decoded dictionary are in the order of their encodings.
      if value.dictionaryValue == nil { #expect(try DERPropertyList.decode(der) == value) }
    }
  }

  @Test("Every date of der_date has Apple's text, and the text gives the date")
  func dates() throws {
    for vector in try TestVectors.list("der_date") {
      let seconds = try vector["seconds_since_2001"].double
      let text = Array(try vector["body"].string.utf8)
      let der = [0x18, UInt8(text.count)] + text
      let date = PropertyValue.date(KeychainDate(secondsSinceReferenceDate: seconds))
      #expect(try DERPropertyList.encode(date) == der)
      let decoded = try #require(try DERPropertyList.decode(der).dateValue)
      #expect(abs(decoded.secondsSinceReferenceDate - seconds) < 1e-6)
      #expect(try DERPropertyList.encode(.date(decoded)) == der)
    }
  }

  private static func value(of vector: TestVectors) throws -> PropertyValue {
    switch try vector["type"].string {
    case "string": .string(try vector["value"].string)
    case "data": .data(try vector["value"].bytes)
    case "bool": .boolean(try vector["value"].boolean)
    case "int": .integer(Int64(try vector["value"].integer))
    case "array": .array(try vector["value"].elements.map { .string(try $0.string) })
    case "set": .set(try vector["value"].elements.map { .string(try $0.string) })
    case "dict":
      .dictionary(
        PropertyDictionary(
          try vector["value"].members.map { .init(key: .string($0.key), value: .string(try $0.value.string)) }))
    default: Self.mixedKeys
    }
  }

  /// `{false: 2313, 2313: true, 'Oh yeah': true, data fcfffa: [false, data 10ff0012a5, 'In Array']}`
  private static let mixedKeys = PropertyValue.dictionary(
    PropertyDictionary([
      .init(key: .boolean(false), value: .integer(2313)),
      .init(key: .integer(2313), value: .boolean(true)),
      .init(key: .string("Oh yeah"), value: .boolean(true)),
      .init(
        key: .data([0xFC, 0xFF, 0xFA]),
        value: .array([.boolean(false), .data([0x10, 0xFF, 0x00, 0x12, 0xA5]), .string("In Array")])),
    ]))
}
