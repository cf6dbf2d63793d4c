import Basics
import Testing

@testable import KeychainFormats

private struct Number: AttributeMapValue, ExpressibleByIntegerLiteral, Equatable {
  let value: Int
  init(integerLiteral value: Int) { self.value = value }
}

@Suite("Attribute maps")
struct AttributeMapTests {
  /// A reproducible sequence of numbers.
  private struct RandomNumbers {
    var state: UInt64

    mutating func next(below limit: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % limit
    }
  }

  @Test(
    "An attribute map equals a dictionary after any changes, with few codes and with many", arguments: [4, 30, 200])
  func changes(codeCount: Int) {
    var map: AttributeMap<Number> = [:]
    var dictionary: [AttributeCode: Number] = [:]
    var random = RandomNumbers(state: UInt64(codeCount))
    for step in 0..<4000 {
      let code = AttributeCode(rawValue: "code\(random.next(below: codeCount))")
      let value = random.next(below: 3) == 0 ? nil : Number(integerLiteral: step)
      map[code] = value
      dictionary[code] = value
      #expect(map.count == dictionary.count && map[code] == dictionary[code])
    }
    for number in 0..<codeCount {
      let code = AttributeCode(rawValue: "code\(number)")
      #expect(map[code] == dictionary[code])
    }
    #expect(Set(map.keys) == Set(dictionary.keys))
    #expect(map == AttributeMap(dictionary.map { ($0.key, $0.value) }.shuffled()))
    #expect(
      map.filter { $0.value.value.isMultiple(of: 2) }.count
        == dictionary.count { $0.value.value.isMultiple(of: 2) })
  }

  /// Returns a value of any attribute type, or sometimes of a type that only property lists have.
  private func makeRandomValue(_ random: inout RandomNumbers) -> PropertyValue {
    let number = random.next(below: 1000)
    switch random.next(below: 24) {
    case 0..<5: return .string(String(repeating: "ö\u{301}", count: number % 40))
    case 5..<10: return .data((0..<number % 300).map { UInt8(truncatingIfNeeded: $0 &* number) })
    case 10..<14: return .integer(Int64(number) - 500)
    case 14, 15: return .integer(number.isMultiple(of: 2) ? .min : .max)
    case 16: return .boolean(number.isMultiple(of: 2))
    case 17: return .date(KeychainDate(secondsSinceReferenceDate: Double(number) / 7))
    case 18..<23: return .date(KeychainDate(secondsSinceReferenceDate: -1.5, encodedText: "20001231235958.5Z"))
    default: return .array([.integer(Int64(number))])
    }
  }

  @Test(
    "A packed map has the same values as a dictionary, also after changes", arguments: [14, 90])
  func packing(codeCount: Int) {
    var map: AttributeMap<PropertyValue> = [:]
    var dictionary: [AttributeCode: PropertyValue] = [:]
    var random = RandomNumbers(state: 7)
    var packedCount = 0
    for _ in 0..<3000 {
      let code = AttributeCode(rawValue: "code\(random.next(below: codeCount))")
      let value = random.next(below: 3) == 0 ? nil : makeRandomValue(&random)
      map[code] = value
      dictionary[code] = value
      if random.next(below: 2) == 0 { map.pack() }
      if case .packed = map.contents { packedCount += 1 }
      #expect(map.count == dictionary.count && map[code] == dictionary[code])
      #expect(map == AttributeMap(dictionary.map { ($0.key, $0.value) }))
    }
    #expect(packedCount > 20)
  }

  @Test("Packing preserves the text of a date, a date that is not a number, and empty values")
  func packedDates() throws {
    let dates: [KeychainDate] = [
      KeychainDate(secondsSinceReferenceDate: 0.25, encodedText: "20010101000000.25Z"),
      KeychainDate(secondsSinceReferenceDate: 0.25), KeychainDate(secondsSinceReferenceDate: .nan),
      KeychainDate(secondsSinceReferenceDate: -.infinity, encodedText: ""),
      // Whole seconds, milliseconds, a time zone, and an unusual form; then texts that do not match the date.
      try DERDate.parse("20240309122640Z"), try DERDate.parse("20240309122640.125Z"),
      try DERDate.parse("20240309122640.5-0730"), try DERDate.parse("00010101000000.123456789012345678Z"),
      KeychainDate(secondsSinceReferenceDate: 1, encodedText: "20010101000000Z"),
      KeychainDate(secondsSinceReferenceDate: -0.0, encodedText: "20010101000000Z"),
      KeychainDate(secondsSinceReferenceDate: 0, encodedText: "20010101000000Z"),
      KeychainDate(secondsSinceReferenceDate: 0, encodedText: "20010101000000z"),
      KeychainDate(secondsSinceReferenceDate: 0, encodedText: "20010101000000Z" + String(repeating: "Z", count: 60)),
    ]
    let values = dates.map(PropertyValue.date) + [.string(""), .data([]), .boolean(false), .integer(0)]
    let packed = try #require(PackedPropertyValues(values))
    for (index, date) in dates.enumerated() {
      let unpacked = try #require(packed[index].dateValue)
      #expect(unpacked.secondsSinceReferenceDate.bitPattern == date.secondsSinceReferenceDate.bitPattern)
      #expect(unpacked.encodedText == date.encodedText)
    }
    #expect(values.indices.dropFirst(dates.count).allSatisfy { packed[$0] == values[$0] })
  }

  @Test("Packing preserves UUIDs in both cases, and texts that look like UUIDs")
  func packedUUIDs() throws {
    let texts: [String] = [
      "9866DE2D-1601-4A2B-A978-EF6767496B37", "9866de2d-1601-4A2B-A978-EF6767496B37",
      "9866DE2D-1601-4A2B-A978-EF6767496B3", "9866DE2D-1601-4A2B-A978-EF6767496B377",
      "9866DE2D+1601-4A2B-A978-EF6767496B37", "G866DE2D-1601-4A2B-A978-EF6767496B37",
      "00000000-0000-0000-0000-000000000000", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF", String(repeating: "é", count: 18),
    ]
    let packed = try #require(PackedPropertyValues(texts.map(PropertyValue.string)))
    #expect(texts.indices.allSatisfy { packed[$0] == .string(texts[$0]) })
  }

  @Test("Packing preserves integers next to every power of two")
  func packedIntegers() throws {
    let positiveNumbers = (0..<64).flatMap { shift in [-1, 0, 1].map { (Int64(1) << shift) &+ $0 } }
    let numbers = positiveNumbers + positiveNumbers.map { 0 &- $0 } + [.min, .max]
    let packed = try #require(PackedPropertyValues(numbers.map(PropertyValue.integer)))
    #expect(numbers.indices.allSatisfy { packed[$0] == .integer(numbers[$0]) })
  }

  @Test("A value that is too large, or of a type that attributes do not have, is not packed")
  func unpackable() {
    // The largest packed value has two offsets of two bytes and its type.
    let maximumByteCount = (16 << 10) - 3 * 2 - 2 - 1
    #expect(PackedPropertyValues([.integer(1), .data(Array(repeating: 7, count: maximumByteCount))]) != nil)
    let unpackableValues: [PropertyValue] = [
      .data(Array(repeating: 7, count: maximumByteCount + 1)), .null, .real(1), .uid(1), .unsignedInteger(.max),
      .array([]), .dictionary([:]), .set([]),
    ]
    for value in unpackableValues {
      #expect(PackedPropertyValues([.integer(1), value]) == nil)
    }
  }

  @Test("A packed map finds its values with offsets of one byte and of two bytes")
  func packedOffsets() throws {
    for count in 230...270 {
      let values: [PropertyValue] = [.data(Array(repeating: 7, count: count)), .string("end"), .integer(-3)]
      let packed = try #require(PackedPropertyValues(values))
      #expect(values.indices.allSatisfy { packed[$0] == values[$0] }, "\(count) bytes")
    }
  }

  @Test("Two maps are equal only if they have the same codes and values")
  func equality() {
    let map: AttributeMap<Number> = ["acct": 1, "svce": 2]
    #expect(map == ["svce": 2, "acct": 1])
    #expect(map != ["acct": 1] && map != ["acct": 1, "svce": 3] && map != ["acct": 1, "srvr": 2])
    #expect(map.mapValues { Number(integerLiteral: $0.value * 2) } == ["acct": 2, "svce": 4])
  }

  @Test("Merging two maps combines the values of common codes")
  func merging() {
    var map: AttributeMap<Number> = ["acct": 1]
    map.merge(["acct": 2, "svce": 3]) { old, _ in old }
    #expect(map == ["acct": 1, "svce": 3])
    map.merge(["acct": 2]) { _, new in new }
    #expect(map["acct"] == 2)
  }

  @Test("Codes with the same first seven letters are different codes")
  func longCodes() {
    let map: AttributeMap<Number> = ["abcdefg": 1, "abcdefgh": 2, "abcdefgi": 3]
    #expect(map.count == 3 && map["abcdefg"] == 1 && map["abcdefgh"] == 2 && map["abcdefgi"] == 3)
    #expect(map.keys.map(\.rawValue) == ["abcdefg", "abcdefgh", "abcdefgi"])
  }
}
