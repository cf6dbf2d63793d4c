import Basics
import KeychainFormats
import TestSupport
import Testing

@Suite("Fast reading of items in DER")
struct CanonicalDERReaderTests {
  /// The result of reading an item. The fast reader packs the item while it reads, the strict reader does not.
  private enum ReadResult: Equatable {
    case item(KeychainItem)
    case error(String)

    init(_ bytes: [UInt8], _ kind: ItemKind, packs: Bool, repairsDates: Bool) {
      do throws(FormatError) {
        var item = try bytes.withRawBytes { (bytes) throws(FormatError) in
          try KeychainItem(derDictionary: bytes, kind: kind, repairsDates: repairsDates, packs: packs)
        }
        if !packs { item.pack() }
        self = .item(item)
      } catch {
        self = .error(error.description)
      }
    }

    static func == (left: Self, right: Self) -> Bool {
      switch (left, right) {
      case (.error(let left), .error(let right)): left == right
      case (.item(let left), .item(let right)):
        left.isPacked == right.isPacked && hasEqualAttributes(left, right) && hasEqualSecrets(left, right)
      default: false
      }
    }

    /// Packed items are compared with the texts of their dates, which `==` of attributes ignores.
    private static func hasEqualAttributes(_ left: KeychainItem, _ right: KeychainItem) -> Bool {
      left.attributes.keys == right.attributes.keys
        && (left.isPacked ? left.hasSamePackedContent(as: right) : left.attributes == right.attributes)
    }

    private static func hasEqualSecrets(_ left: KeychainItem, _ right: KeychainItem) -> Bool {
      left.secrets.keys == right.secrets.keys
        && zip(left.secrets, right.secrets).allSatisfy { $0.value.constantTimeEquals($1.value) }
    }

    var isPackedItem: Bool { if case .item(let item) = self { item.isPacked } else { false } }
  }

  /// Reads the bytes with both readers, compares their results, and returns whether the result is a packed item.
  @discardableResult
  private static func compareReaders(_ bytes: [UInt8], _ kind: ItemKind) -> Bool {
    var isPacked = false
    for repairsDates in [true, false] {
      let fast = ReadResult(bytes, kind, packs: true, repairsDates: repairsDates)
      let strict = ReadResult(bytes, kind, packs: false, repairsDates: repairsDates)
      #expect(fast == strict, "\(bytes)")
      isPacked = isPacked || fast.isPackedItem
    }
    return isPacked
  }

  /// Encodes an element.
  ///
  /// - Parameter tag: 0x01 boolean, 0x02 integer, 0x04 data, 0x05 null, 0x0C string, 0x18 date, 0x30 array or pair,
  ///   0x31 dictionary, 0xD1 set.
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

  /// Encoded values: valid values, and values with each kind of fault.
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
    let account = Self.pair("acct", Self.text("x"))
    var packedCount = 0
    for value in Self.values {
      for code in ["acct", "svce", "v_Data", "binn", "a code of more than seven letters", "", "é"] {
        let pair = Self.pair(code, value)
        let item = Self.element(0x31, pair + Self.secret)
        if Self.compareReaders(item, kind) { packedCount += 1 }
        Self.compareReaders(Self.element(0x31, account + pair), kind)
        Self.compareReaders(item + [0], kind)
        Self.compareReaders(Array(item.dropLast()), kind)
      }
    }
    // Items as devices write them are packed.
    #expect(packedCount > Self.values.count)
  }

  @Test("The fast reader reads an item as devices encode it", arguments: ItemKind.allCases)
  func deviceEncoding(_ kind: ItemKind) throws {
    // The largest known items of devices have 37 attributes.
    let codes = AttributeTable.definitions(of: kind).filter { !$0.flags.contains(.returnedAsData) }.map(\.code)
      .prefix(37)
    var item = KeychainItem(kind: kind)
    for (index, code) in codes.enumerated() {
      let values: [PropertyValue] = [
        .string("person@example.org"), .integer(Int64(index)), .data([1, 2, 3]), .boolean(true),
        .date(try DERDate.parse("20251107092000.125Z")),
      ]
      item[code] = values[index % values.count]
    }
    item.secret = SensitiveBytes(copying: [1, 2, 3])
    let bytes = try item.derDictionary().withBytes { Array($0) }
    let readItem = bytes.withRawBytes { KeychainItem(packing: $0, kind: kind) }
    #expect(readItem?.attributes.count == codes.count && readItem?.secrets.count == 1)
    #expect(Self.compareReaders(bytes, kind))
  }

  @Test("The fast reader and the strict reader give the same item for every kind of malformed pair")
  func pairs() {
    let (key, value) = (Self.text("acct"), Self.text("x"))
    let null = Self.element(0x05, [])
    func manyPairs(_ count: Int) -> [UInt8] { (0..<count).flatMap { Self.pair("a\($0)", value) } }
    // The fast reader reads at most 42 attributes.
    let contents: [[UInt8]] = [
      [], Self.element(0x30, []), Self.element(0x30, key), Self.element(0x30, key + value + value),
      Self.element(0x31, key + value), Self.element(0x30, Self.element(0x12, Array("1".utf8)) + value),
      Self.element(0x30, Self.element(0x04, [1]) + value),
      Self.element(0x30, value + key) + Self.element(0x30, key + value),
      Self.secret + Self.secret, Self.pair("v_Data", value), Self.pair("v_Data", null) + Self.secret,
      Self.pair("acct", null) + Self.pair("acct", value), manyPairs(42), manyPairs(43),
      manyPairs(60) + Self.pair("a7", value),
    ]
    for content in contents {
      Self.compareReaders(Self.element(0x31, content), .genericPassword)
      Self.compareReaders(Self.element(0x30, content), .genericPassword)
      Self.compareReaders(Self.element(0x31, content) + content, .genericPassword)
    }
    #expect(Self.compareReaders(Self.element(0x31, manyPairs(42)), .genericPassword))
  }

  private static func makeRandomItem(_ random: inout SeededRandom) throws -> KeychainItem {
    var item = KeychainItem(kind: .internetPassword)
    item[.account] = .string("alice@example.org")
    item[.port] = .integer(Int64(truncatingIfNeeded: random.next()) >> Int64.random(in: 0...63, using: &random))
    item[.generic] = .data(random.bytes(.random(in: 0...40, using: &random)))
    item[.synchronizable] = .boolean(true)
    item[.modificationDate] = .date(try DERDate.parse("20251107092000.125Z"))
    item[.uuid] = .string("DEADBEEF-0000-1111-2222-0123456789AB")
    item.secret = SensitiveBytes(copying: random.bytes(.random(in: 0...40, using: &random)))
    return item
  }

  /// Flips a bit, or replaces, removes or repeats a byte.
  private static func changeRandomByte(of bytes: inout [UInt8], _ random: inout SeededRandom) {
    let offset = Int.random(in: bytes.indices, using: &random)
    switch Int.random(in: 0..<4, using: &random) {
    case 0: bytes[offset] ^= 1 << UInt8.random(in: 0...7, using: &random)
    case 1: bytes[offset] = UInt8(truncatingIfNeeded: random.next())
    case 2: bytes.remove(at: offset)
    default: bytes.insert(bytes[offset], at: offset)
    }
  }

  @Test("The fast reader and the strict reader give the same item after random changes", arguments: UInt64(0)..<60)
  func changed(_ seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let bytes = try Self.makeRandomItem(&random).derDictionary().withBytes { Array($0) }
    #expect(Self.compareReaders(bytes, .internetPassword))
    for _ in 0..<300 {
      var changed = bytes
      for _ in 0..<Int.random(in: 1...3, using: &random) { Self.changeRandomByte(of: &changed, &random) }
      Self.compareReaders(changed, .internetPassword)
    }
  }
}
