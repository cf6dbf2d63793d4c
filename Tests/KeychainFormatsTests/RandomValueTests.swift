import Basics
import Foundation
import KeychainFormats
import TestSupport
import Testing

@Suite("Random values")
struct RandomValueTests {
  private static func value(_ random: inout SeededRandom, depth: Int) -> PropertyValue {
    switch Int.random(in: 0..<(depth > 0 ? 8 : 6), using: &random) {
    case 0: return .boolean(.random(using: &random))
    case 1:
      return .integer(Int64(truncatingIfNeeded: random.next()) >> Int64.random(in: 0...63, using: &random))
    case 2:
      let seconds = Double.random(in: -1e9...1e10, using: &random)
      return .date(KeychainDate(secondsSinceReferenceDate: seconds))
    case 3: return .data(random.bytes(.random(in: 0...300, using: &random)))
    case 4, 5: return .string(text(&random))
    case 6:
      return .array((0..<Int.random(in: 0...20, using: &random)).map { _ in value(&random, depth: depth - 1) })
    default:
      var dictionary = PropertyDictionary()
      for number in 0..<Int.random(in: 0...20, using: &random) {
        dictionary["\(number) \(text(&random))"] = value(&random, depth: depth - 1)
      }
      return .dictionary(dictionary)
    }
  }

  private static func text(_ random: inout SeededRandom) -> String {
    let letters: [Character] = ["a", "Z", "0", " ", "é", "ß", "日", "🔑", "\n", "&"]
    let ascii = Bool.random(using: &random)
    return String(
      (0..<Int.random(in: 0...40, using: &random)).map { _ in
        letters[Int.random(in: 0..<(ascii ? 4 : letters.count), using: &random)]
      })
  }

  @Test(
    "Random values survive a round trip through a binary property list, and Foundation reads them",
    arguments: UInt64(0)..<100)
  func binaryPlist(_ seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let value = PropertyValue.array([Self.value(&random, depth: 4)])
    let bytes = try BinaryPlist.encode(value)
    #expect(try BinaryPlist.decode(bytes) == value)
    let foundation = try PropertyListSerialization.propertyList(from: Data(bytes), format: nil)
    let reencoded = try PropertyListSerialization.data(fromPropertyList: foundation, format: .binary, options: 0)
    #expect(try DERPropertyList.encode(BinaryPlist.decode(Array(reencoded))) == DERPropertyList.encode(value))
  }

  @Test("Random values survive a round trip through DER, except for the order of pairs", arguments: UInt64(0)..<100)
  func der(_ seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let value = Self.value(&random, depth: 4)
    let bytes = try DERPropertyList.encode(value)
    #expect(try DERPropertyList.encode(DERPropertyList.decode(bytes)) == bytes)
  }

  @Test("If an item reports that its encoding fits into a size, the encoding does fit", arguments: UInt64(0)..<100)
  func certainEncodings(_ seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var item = KeychainItem(kind: .genericPassword)
    for number in 0..<Int.random(in: 0...20, using: &random) {
      item[AttributeCode(rawValue: "\(number) \(Self.text(&random))")] = Self.value(
        &random, depth: number.isMultiple(of: 7) ? 1 : 0)
    }
    // In UTC, this date is in the year 10,000.
    let dateInYear10000 = try DERDate.parse("99991231235959-0001")
    let smallestFraction = KeychainDate(secondsSinceReferenceDate: .leastNonzeroMagnitude)
    let dates = [dateInYear10000, smallestFraction, .reference]
    item[.creationDate] = .date(dates[Int.random(in: 0..<3, using: &random)])
    item[.server] = [.null, .real(0.5), .string("x")][Int.random(in: 0..<3, using: &random)]
    item.secret = SensitiveBytes(copying: random.bytes(.random(in: 0...300, using: &random)))

    var packed = item
    packed.pack()
    for item in [item, packed] {
      for bound in [64, 500, 1000, 2000, 4000, 100_000] where item.certainlyEncodes(within: bound) {
        #expect(try item.derDictionary().count <= bound)
        #expect(try item.digestEncoding().count <= bound)
      }
      if item[.creationDate] == .date(dateInYear10000) { #expect(!item.certainlyEncodes(within: .max)) }
    }
  }

  @Test("An item that reports an exact round trip is equal after a round trip", arguments: UInt64(0)..<100)
  func exactRoundTrip(_ seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var originalItem = KeychainItem(kind: .genericPassword)
    for number in 0..<Int.random(in: 0...20, using: &random) {
      originalItem[AttributeCode(rawValue: "\(number) \(Self.text(&random))")] = Self.value(&random, depth: 0)
    }
    // Like a UUID, this protection is not a known class. It must survive nevertheless.
    originalItem[.protection] = .string("DEADBEEF-0000-1111-2222-0123456789AB")
    originalItem.secret = SensitiveBytes(copying: random.bytes(.random(in: 0...300, using: &random)))
    // Decoding keeps the text of each date, and sorts the attributes as DER does.
    let item = try KeychainItem(derDictionary: originalItem.derDictionary(), kind: .genericPassword)
    let reencoded = try KeychainItem(derDictionary: item.derDictionary(), kind: .genericPassword)
    #expect(item.roundTripsExactly == item.isPacked)
    #expect(!item.isPacked || reencoded.hasSamePackedContent(as: item))
    // A different order of attributes gives the same result.
    let pairs = item.attributes.map { ($0.key, $0.value) }.shuffled(using: &random)
    var shuffled = KeychainItem(kind: .genericPassword, secrets: item.secrets)
    for (code, value) in pairs { shuffled[code] = value }
    shuffled.pack()
    #expect(shuffled.roundTripsExactly == item.isPacked)
    let reencodedShuffled = try KeychainItem(derDictionary: shuffled.derDictionary(), kind: .genericPassword)
    #expect(!item.isPacked || reencodedShuffled.hasSamePackedContent(as: item))
  }

  @Test("An item that may change in a round trip does not report an exact round trip", arguments: Obstacle.allCases)
  func inexactRoundTrip(_ obstacle: Obstacle) throws {
    var plain = KeychainItem(kind: .genericPassword)
    plain[.account] = .string("alice@example.org")
    plain[.modificationDate] = .date(try DERDate.parse("20251107092000.125Z"))
    plain.secret = SensitiveBytes(copying: [1, 2, 3])
    var item = plain
    let text = "20251107092000.125Z"
    let seconds = try DERDate.parse(text).secondsSinceReferenceDate
    switch obstacle {
    case .notPacked: break
    case .dateWithoutText: item[.creationDate] = .date(KeychainDate(secondsSinceReferenceDate: seconds))
    case .dateWithOtherText:
      item[.creationDate] = .date(KeychainDate(secondsSinceReferenceDate: seconds + 1, encodedText: text))
    case .firstYear: item[.creationDate] = .date(try DERDate.parse("00000101000000+0100"))
    case .lastYear: item[.creationDate] = .date(try DERDate.parse("99991231235959-0100"))
    case .container: item[.generic] = .array([.null])
    case .secretAmongAttributes: item[.valueData] = .data([1])
    case .attributeAmongSecrets: item.secrets[.label] = SensitiveBytes(copying: [1])
    case .large: item.secret = SensitiveBytes(copying: [UInt8](repeating: 1, count: 100_000))
    }
    if obstacle != .notPacked { item.pack() }
    plain.pack()
    #expect(plain.roundTripsExactly)
    #expect(!item.roundTripsExactly)
  }

  enum Obstacle: CaseIterable {
    case notPacked, dateWithoutText, dateWithOtherText, firstYear, lastYear, container
    case secretAmongAttributes, attributeAmongSecrets, large
  }

  @Test("A typical item reports that its encoding fits into 1,000 bytes")
  func plainItem() {
    var item = KeychainItem(kind: .internetPassword)
    item[.account] = .string("alice@example.org")
    item[.port] = .integer(443)
    item[.generic] = .data([1, 2, 3])
    item[.modificationDate] = .date(KeychainDate(secondsSinceReferenceDate: 700_000_000.25))
    item.secret = SensitiveBytes(copying: [1, 2, 3])
    #expect(item.certainlyEncodes(within: 1000))
    #expect(!item.certainlyEncodes(within: 30))
  }

  @Test("Random bytes do not crash any reader", arguments: UInt64(0)..<50)
  func noise(_ seed: UInt64) {
    var random = SeededRandom(seed: seed)
    for _ in 0..<50 {
      let noise = random.bytes(.random(in: 0...200, using: &random))
      // The last three random bytes are the offsets of three objects.
      let plist = PlistParts(noise).with { parts in
        parts.count = 3
        parts.offsets = []
        parts.tableOffset = UInt64(8 + max(0, noise.count - 3))
      }.bytes
      _ = try? BinaryPlist.decode(plist)
      _ = try? KeychainBackupFile(parsing: plist)
      _ = try? FileRecord(archive: plist)
      _ = try? DERPropertyList.decode([0x31, 0x81, UInt8(noise.count)] + noise)
      _ = try? Keybag(parsing: noise)
      _ = try? ItemBlob(parsing: [3, 0, 0, 0, 6, 0, 0, 0, 40, 0, 0, 0] + noise)
      _ = try? AccessControlledItemBlob(parsing: [6, 0, 0, 0, 4, 0, 0, 0] + noise)
      _ = try? PersistentReference(parsing: Array("tkpr".utf8) + noise)
    }
  }
}
