import Basics
import KeychainFormats
import TestSupport
import Testing

@Suite("Fast reading of items in DER")
struct CanonicalDERReaderTests {
  private enum Outcome: Equatable {
    case item(KeychainItem)
    case fault(String)

    init(_ bytes: [UInt8], _ kind: ItemKind, packs: Bool, repairsDates: Bool) {
      do throws(FormatError) {
        var item = try bytes.withRawBytes { (bytes) throws(FormatError) in
          try KeychainItem(derDictionary: bytes, kind: kind, repairsDates: repairsDates, packs: packs)
        }
        if !packs { item.pack() }
        self = .item(item)
      } catch {
        self = .fault(error.description)
      }
    }

    /// Compares also the texts of dates and the order.
    static func == (left: Self, right: Self) -> Bool {
      switch (left, right) {
      case (.fault(let left), .fault(let right)): left == right
      case (.item(let left), .item(let right)):
        left.isPacked == right.isPacked && left.attributes.keys == right.attributes.keys
          && left.secrets.keys == right.secrets.keys
          && (left.isPacked ? left.hasSamePackedContent(as: right) : left.attributes == right.attributes)
          && zip(left.secrets, right.secrets).allSatisfy { $0.value.constantTimeEquals($1.value) }
      default: false
      }
    }

    var isPackedItem: Bool { if case .item(let item) = self { item.isPacked } else { false } }
  }

  /// Reads the bytes with both readers, and returns whether they give a packed item.
  @discardableResult
  private static func compare(_ bytes: [UInt8], _ kind: ItemKind) -> Bool {
    var isPacked = false
    for repairsDates in [true, false] {
      let fast = Outcome(bytes, kind, packs: true, repairsDates: repairsDates)
      let strict = Outcome(bytes, kind, packs: false, repairsDates: repairsDates)
      #expect(fast == strict, "\(bytes)")
      isPacked = isPacked || fast.isPackedItem
    }
    return isPacked
  }

  private static func element(_ tag: UInt8, _ contents: [UInt8]) -> [UInt8] {
    let count = contents.count
    switch count {
    case ..<0x80: return [tag, UInt8(count)] + contents
    case ..<0x100: return [tag, 0x81, UInt8(count)] + contents
    default: return [tag, 0x82, UInt8(count >> 8), UInt8(count & 0xFF)] + contents
    }
  }

  private static func pair(_ code: String, _ value: [UInt8]) -> [UInt8] {
    element(0x30, element(0x0C, Array(code.utf8)) + value)
  }

  private static func text(_ text: String) -> [UInt8] { element(0x0C, Array(text.utf8)) }
  private static func date(_ text: String) -> [UInt8] { element(0x18, Array(text.utf8)) }

  private static let secret = pair("v_Data", element(0x04, [1, 2, 3]))

  private static let values: [[UInt8]] = {
    let integers: [[UInt8]] = [
      [], [0], [1], [0x7F], [0x80], [0xFF], [0, 0x7F], [0, 0x80], [0xFF, 0x7F], [0xFF, 0x80], [0x7F, 0xFF], [0x80, 0],
      [0x80, 0, 0, 0, 0, 0, 0, 0], [0x7F, 1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 3, 4, 5, 6, 7, 8], [0, 0], [0xFF, 0xFF],
    ]
    let texts = [
      "", "alice", "é", "日", "\u{0}", "DEADBEEF-0000-1111-2222-0123456789AB", "deadbeef-0000-1111-2222-0123456789ab",
      "DEADBEEF+0000-1111-2222-0123456789AB", "DEADBEEF-0000-1111-2222-0123456789A", String(repeating: "x", count: 200),
      String(repeating: "x", count: 300), String(repeating: "x", count: 17_000),
    ]
    let dates = [
      "20251107092000Z", "20251107092000.125Z", "20251107092000.1250Z", "20251107092000.Z", "20251107092000+0130",
      "20251107092000-2359", "20251107092000", "20251307092000Z", "00000101000000Z", "99991231235959Z",
      "99991231235959-0100", "20251107092061Z", "2025110709200 Z", "", "20240229000000.00000000000000000001Z",
      "20251107092000." + String(repeating: "1", count: 60) + "Z",
    ]
    let others: [[UInt8]] = [
      element(0x01, [0]), element(0x01, [1]), element(0x01, [0xFF]), element(0x01, []), element(0x01, [0, 0]),
      element(0x05, []), element(0x05, [0]), element(0x04, []), element(0x04, [UInt8](repeating: 7, count: 1000)),
      element(0x0C, [0xC3]), element(0x0C, [0xED, 0xA0, 0x80]), element(0x12, Array("12".utf8)), element(0x30, []),
      element(0x31, []), element(0xD1, []), element(0x17, Array("251107092000Z".utf8)), element(0x42, []),
      [0x0C, 0x80],
      [0x0C, 0x81, 0x03, 0x41, 0x42, 0x43], [0x0C, 0x82, 0, 0x80] + [UInt8](repeating: 0x41, count: 0x80), [0x0C], [],
    ]
    return integers.map { element(0x02, $0) } + texts.map(text) + dates.map(date) + others
  }()

  @Test(
    "The fast reader and the strict reader give the same item for every type of value", arguments: ItemKind.allCases)
  func values(_ kind: ItemKind) {
    var packedCount = 0
    for value in Self.values {
      for code in ["acct", "svce", "v_Data", "binn", "a code of more than seven letters", "", "é"] {
        let single = Self.element(0x31, Self.pair(code, value) + Self.secret)
        packedCount += Self.compare(single, kind) ? 1 : 0
        Self.compare(Self.element(0x31, Self.pair("acct", Self.text("x")) + Self.pair(code, value)), kind)
        Self.compare(single + [0], kind)
        Self.compare(Array(single.dropLast()), kind)
      }
    }
    // Items as devices write them are packed.
    #expect(packedCount > Self.values.count)
  }

  @Test("An item with the encoding of devices is read by the fast reader", arguments: ItemKind.allCases)
  func fast(_ kind: ItemKind) throws {
    let codes = AttributeTable.definitions(of: kind).filter { !$0.flags.contains(.returnedAsData) }.map(\.code)
    var item = KeychainItem(kind: kind)
    for (index, code) in codes.prefix(37).enumerated() {
      let values: [PropertyValue] = [
        .string("person@example.org"), .integer(Int64(index)), .data([1, 2, 3]), .boolean(true),
        .date(try DERDate.parse("20251107092000.125Z")),
      ]
      item[code] = values[index % values.count]
    }
    item.secret = SensitiveBytes(copying: [1, 2, 3])
    let bytes = try item.derDictionary().withBytes { Array($0) }
    let fast = bytes.withRawBytes { KeychainItem(packing: $0, kind: kind) }
    #expect(fast?.attributes.count == min(codes.count, 37) && fast?.secrets.count == 1)
    #expect(Self.compare(bytes, kind))
  }

  @Test("The fast reader and the strict reader give the same item for every kind of malformed pair")
  func pairs() {
    let (key, value) = (Self.text("acct"), Self.text("x"))
    let contents: [[UInt8]] = [
      [], Self.element(0x30, []), Self.element(0x30, key), Self.element(0x30, key + value + value),
      Self.element(0x31, key + value), Self.element(0x30, Self.element(0x12, Array("1".utf8)) + value),
      Self.element(0x30, Self.element(0x04, [1]) + value),
      Self.element(0x30, value + key) + Self.element(0x30, key + value),
      Self.secret + Self.secret, Self.pair("v_Data", value), Self.pair("v_Data", Self.element(0x05, [])) + Self.secret,
      Self.pair("acct", Self.element(0x05, [])) + Self.pair("acct", value),
      (0..<42).flatMap { Self.pair("a\($0)", value) }, (0..<43).flatMap { Self.pair("a\($0)", value) },
      (0..<60).flatMap { Self.pair("a\($0)", value) } + Self.pair("a7", value),
    ]
    for content in contents {
      Self.compare(Self.element(0x31, content), .genericPassword)
      Self.compare(Self.element(0x30, content), .genericPassword)
      Self.compare(Self.element(0x31, content) + content, .genericPassword)
    }
    #expect(Self.compare(Self.element(0x31, (0..<42).flatMap { Self.pair("a\($0)", value) }), .genericPassword))
  }

  @Test("The fast reader and the strict reader give the same item after random changes", arguments: UInt64(0)..<60)
  func changed(_ seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var item = KeychainItem(kind: .internetPassword)
    item[.account] = .string("alice@example.org")
    item[.port] = .integer(Int64(truncatingIfNeeded: random.next()) >> Int64.random(in: 0...63, using: &random))
    item[.generic] = .data(random.bytes(.random(in: 0...40, using: &random)))
    item[.synchronizable] = .boolean(true)
    item[.modificationDate] = .date(try DERDate.parse("20251107092000.125Z"))
    item[.uuid] = .string("DEADBEEF-0000-1111-2222-0123456789AB")
    item.secret = SensitiveBytes(copying: random.bytes(.random(in: 0...40, using: &random)))
    let bytes = try item.derDictionary().withBytes { Array($0) }
    #expect(Self.compare(bytes, .internetPassword))
    for _ in 0..<300 {
      var changed = bytes
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let offset = Int.random(in: changed.indices, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: changed[offset] ^= 1 << UInt8.random(in: 0...7, using: &random)
        case 1: changed[offset] = UInt8(truncatingIfNeeded: random.next())
        case 2: changed.remove(at: offset)
        default: changed.insert(changed[offset], at: offset)
        }
      }
      Self.compare(changed, .internetPassword)
    }
  }
}
