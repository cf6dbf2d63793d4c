import Basics
import KeychainFormats
import TestSupport
import Testing

/// A small keybag as records, so that a test can damage one of them.
struct KeybagParts {
  var records: [(tag: String, value: [UInt8])]

  static let header: [(tag: String, value: [UInt8])] = [
    ("VERS", [0, 0, 0, 4]), ("TYPE", [0, 0, 0, 1]), ("UUID", [UInt8](repeating: 0x11, count: 16)),
    ("HMCK", [UInt8](repeating: 0, count: 40)), ("WRAP", [0, 0, 0, 0]), ("SALT", [UInt8](repeating: 0x22, count: 20)),
    ("ITER", [0, 0, 0x27, 0x10]), ("DPWT", [0, 0, 0, 1]), ("DPIC", [0, 0, 0x03, 0xE8]),
    ("DPSL", [UInt8](repeating: 0x33, count: 20)),
  ]
  static let group: [(tag: String, value: [UInt8])] = [
    ("UUID", [UInt8](repeating: 0x44, count: 16)), ("CLAS", [0, 0, 0, 6]), ("WRAP", [0, 0, 0, 2]),
    ("KTYP", [0, 0, 0, 0]), ("WPKY", [UInt8](repeating: 0x55, count: 40)),
  ]

  static let valid = KeybagParts(records: header + group)

  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    for record in records {
      let count = UInt32(record.value.count)
      bytes += Array(record.tag.utf8)
      bytes += [UInt8(count >> 24), UInt8(count >> 16 & 0xFF), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF)]
      bytes += record.value
    }
    return bytes
  }

  func offset(of index: Int) -> Int { records[..<index].reduce(0) { $0 + 8 + $1.value.count } }

  func without(_ index: Int) -> [UInt8] {
    var copy = self
    copy.records.remove(at: index)
    return copy.bytes
  }

  func repeating(_ index: Int) -> [UInt8] {
    var copy = self
    copy.records.insert(records[index], at: index + 1)
    return copy.bytes
  }

  func with(_ index: Int, _ value: [UInt8]) -> [UInt8] {
    var copy = self
    copy.records[index].value = value
    return copy.bytes
  }

  func offsetAfter(_ index: Int) -> Int { offset(of: index) + 8 + records[index].value.count }
}

@Suite("Keybags with one fault")
struct KeybagFaultTests {
  private static let bag = KeybagParts.valid
  private static let headerEnd = bag.offset(of: 10)
  private static let bytes = bag.bytes
  private static let end = bytes.count

  private static func without(_ index: Int) -> Fault {
    let (tag, value) = bag.records[index]
    let end = index < 10 ? headerEnd : end
    return Fault("no \(tag) (\(index))", bag.without(index), .malformed, at: end - 8 - value.count)
  }

  private static func repeated(_ index: Int) -> Fault {
    Fault(
      "\(bag.records[index].tag) twice (\(index))", bag.repeating(index), .malformed, at: bag.offsetAfter(index))
  }

  private static func shortened(_ index: Int) -> Fault {
    Fault(
      "\(bag.records[index].tag) a byte short (\(index))", bag.with(index, bag.records[index].value.dropLast()),
      .malformed, at: bag.offset(of: index))
  }

  static let faults: [Fault] =
    [
      Fault("no bytes", [], .truncated, at: 0),
      Fault("half a tag", [0x56, 0x45], .truncated, at: 0),
      Fault("a tag without a length", Array("VERS".utf8) + [0, 0], .truncated, at: 4),
      Fault("a length past the end", Array("VERS".utf8) + [0, 0, 0, 5, 0, 0, 0, 4], .truncated, at: 8),
      Fault("the largest length", Array("VERS".utf8) + [0xFF, 0xFF, 0xFF, 0xFF], .truncated, at: 8),
      Fault("three bytes after the last record", bytes + [0, 0, 0], .truncated, at: end),
      Fault("the last record cut short", bytes.dropLast(), .truncated, at: end - 40),
      Fault("DPIC without DPSL", bag.without(9), .malformed, at: headerEnd - 28),
      Fault("DPSL without DPIC", bag.without(8), .malformed, at: headerEnd - 12),
      Fault(
        "a wrapped key of 32 bytes where the password wraps", bag.with(14, .init(repeating: 0, count: 32)), .malformed,
        at: bag.offset(of: 14)),
      Fault(
        "a wrapped key of 40 bytes where only the device wraps", bag.with(12, [0, 0, 0, 1]), .malformed,
        at: bag.offset(of: 14)),
      Fault("a Curve25519 class without its public key", bag.with(13, [0, 0, 0, 1]), .malformed, at: end),
      Fault(
        "a class twice", KeybagParts(records: bag.records + KeybagParts.group).bytes, .malformed, at: end),
    ]
  static let absentFields = [0, 1, 3, 4, 5, 6, 11, 12, 14].map(without)
  static let repeatedFields = [0, 1, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14].map(repeated)
  static let shortenedFields = (0...14).map(shortened)

  @Test(
    "A keybag with a fault is rejected with the name of the field and the offset",
    arguments: faults + absentFields + repeatedFields + shortenedFields)
  func fault(_ fault: Fault) {
    fault.check(.keybag) { bytes throws(FormatError) in try Keybag(parsing: bytes).validate() }
  }

  @Test("The keybag without a fault is valid and survives a round trip byte for byte")
  func valid() throws {
    let bag = try Keybag(parsing: Self.bytes)
    try bag.validate()
    #expect(bag.serialized() == Self.bytes)
    #expect(bag.uuidText == "11111111-1111-1111-1111-111111111111")
    #expect(bag.secondRound == Keybag.SecondRound(rounds: 1000, salt: [UInt8](repeating: 0x33, count: 20)))
  }

  @Test(
    "Two different values that derive the key are a fault; two equal values are not",
    arguments: [(3, "HMCK", false), (5, "SALT", true), (6, "ITER", true), (8, "DPIC", true), (9, "DPSL", true)])
  func derivation(index: Int, tag: String, isFault: Bool) throws {
    var records = Self.bag.records
    #expect(records[index].tag == tag)
    records.insert(records[index], at: 10)
    #expect(try Keybag(parsing: KeybagParts(records: records).bytes).derivationFault == nil)
    records[10].value[0] ^= 1
    let fault = try Keybag(parsing: KeybagParts(records: records).bytes).derivationFault
    #expect(fault == (isFault ? "its \(tag) occurs twice with different values" : nil))
  }

  @Test("64 kB and 64 class keys are read; one more byte or class key is rejected")
  func limits() throws {
    let limit = Keybag.maximumByteCount
    #expect(
      try Keybag(parsing: KeybagParts(records: [("ABCD", .init(repeating: 1, count: limit - 8))]).bytes).header.count
        == 1
    )
    Fault(
      "too large", KeybagParts(records: [("ABCD", .init(repeating: 1, count: limit - 7))]).bytes, .overLimit, at: nil
    )
    .check(.keybag, Keybag.init(parsing:))
    let group: (tag: String, value: [UInt8]) = ("UUID", [])
    let groups = Array(repeating: group, count: Keybag.maximumClassKeyCount + 1)
    #expect(try Keybag(parsing: KeybagParts(records: groups).bytes).classKeys.count == Keybag.maximumClassKeyCount)
    Fault("too many", KeybagParts(records: groups + [group]).bytes, .overLimit, at: nil)
      .check(.keybag, Keybag.init(parsing:))
  }

  @Test(
    "Truncating a keybag or flipping any of its bits does not crash the reader, and every valid one survives a round trip"
  )
  func damage() {
    readEveryDamage(of: Self.bytes) { damaged in
      guard let bag = try? Keybag(parsing: damaged) else { return }
      #expect(bag.serialized() == damaged)
      try? bag.validate()
    }
  }
}

@Suite("Editing keybags")
struct KeybagChangeTests {
  private let parts = KeybagParts(
    records: KeybagParts.header + [("GRCE", [1, 2, 3])] + KeybagParts.group + [("XXXX", []), ("XXXX", [9])])

  @Test("A wrapped key is replaced in place, and the unknown records around it are preserved")
  func replacingKey() throws {
    var bag = try Keybag(parsing: parts.bytes)
    #expect(bag.serialized() == parts.bytes)
    let key = [UInt8](repeating: 0x99, count: 40)
    bag.classKeys[0].wrappedKey = key
    #expect(bag.serialized() == parts.with(15, key))
    #expect(bag.classKey(.whenUnlocked)?.wrappedKey == key)
  }

  @Test("Removing the second round removes only its three records")
  func removingSecondRound() throws {
    var bag = try Keybag(parsing: parts.bytes)
    bag.secondRound = nil
    bag.salt = [UInt8](repeating: 0x77, count: 20)
    var expected = parts
    expected.records[5].value = [UInt8](repeating: 0x77, count: 20)
    expected.records.removeSubrange(7...9)
    #expect(bag.serialized() == expected.bytes)
    try bag.validate()
  }

  @Test("Adding a second round appends its records to the header")
  func addingSecondRound() throws {
    var records = KeybagParts.header + KeybagParts.group
    records.removeSubrange(7...9)
    var bag = try Keybag(parsing: KeybagParts(records: records).bytes)
    bag.secondRound = Keybag.SecondRound(rounds: 1000, salt: [UInt8](repeating: 0x33, count: 20))
    #expect(bag.serialized() == KeybagParts.valid.bytes)
  }

  @Test("Fields that are absent or have the wrong length are nil; a missing KTYP of iOS 4 means a symmetric key")
  func absentFields() throws {
    let bag = try Keybag(
      parsing: KeybagParts(records: [("VERS", [1]), ("UUID", [2]), ("UUID", []), ("CLAS", [])]).bytes)
    #expect(bag.version == nil)
    #expect(bag.type == nil)
    #expect(bag.uuid == nil)
    #expect(bag.uuidText == nil)
    #expect(bag.salt == nil)
    #expect(bag.iterations == nil)
    let classKey = try #require(bag.classKeys.first)
    #expect(classKey.keyClass == nil)
    #expect(classKey.wrap == nil)
    #expect(classKey.keyType == .symmetric)
    #expect(classKey.wrappedKey == nil)
    #expect(classKey.publicKey == nil)
  }

  @Test("The class number of a backup's keybag is not masked, and the flag bits of a device's keybag type are dropped")
  func rawNumbers() throws {
    var parts = KeybagParts.valid
    parts.records[1].value = [0x40, 0, 0, 0]
    parts.records[11].value = [0, 0, 0, 0x16]
    let bag = try Keybag(parsing: parts.bytes)
    #expect(bag.type == .system)
    #expect(bag.classKeys[0].keyClass == KeyClass(rawValue: 0x16))
    #expect(bag.classKey(.whenUnlocked) == nil)
  }

  @Test("A keybag cannot be created with a salt of 19 bytes or a duplicate class")
  func refusedFields() throws {
    func bag(salt: Int, classes: [KeyClass]) throws(FormatError) -> Keybag {
      try Keybag(
        type: .backup, uuid: .init(repeating: 1, count: 16), salt: .init(repeating: 2, count: salt), iterations: 1,
        classKeys: classes.map {
          .init(
            uuid: .init(repeating: 3, count: 16), keyClass: $0, wrap: .device,
            wrappedKey: .init(repeating: 4, count: 32))
        })
    }
    #expect(throws: FormatError.self) { try bag(salt: 19, classes: [.always]) }
    #expect(throws: FormatError.self) { try bag(salt: 20, classes: [.always, .always]) }
    #expect(try bag(salt: 20, classes: [.always]).classKeys.count == 1)
  }

  @Test("The description of a record contains no byte of its value")
  func quietDescriptions() throws {
    let bag = try Keybag(parsing: KeybagParts.valid.bytes)
    var text = ""
    dump(bag.classKeys, to: &text)
    #expect(!text.contains("85"))
    #expect("\(bag.classKeys[0].records[4])" == "WPKY of 40 bytes")
  }
}

@Suite("Signed keybags of devices")
struct SignedKeybagTests {
  private let signature = [UInt8](repeating: 0xAB, count: 20)

  @Test("A keybag and its signature are written as DATA and SIGN, and read again")
  func roundTrip() throws {
    let bag = try Keybag(parsing: KeybagParts.valid.bytes)
    let signed = try SignedKeybag(bag, signature: signature)
    let bytes = KeybagParts(records: [("DATA", KeybagParts.valid.bytes), ("SIGN", signature)]).bytes
    #expect(signed.serialized() == bytes)
    #expect(try SignedKeybag(parsing: bytes) == signed)
    #expect(signed.signedBytes == KeybagParts.valid.bytes)
  }

  @Test("A signed keybag with a fault is rejected with the name of the record and the offset")
  func faults() throws {
    let data: (tag: String, value: [UInt8]) = ("DATA", KeybagParts.valid.bytes)
    let sign: (tag: String, value: [UInt8]) = ("SIGN", signature)
    let dataEnd = 8 + data.value.count
    let faults = [
      Fault("no DATA", KeybagParts(records: [sign]).bytes, .malformed, at: 28),
      Fault("no SIGN", KeybagParts(records: [data]).bytes, .malformed, at: dataEnd),
      Fault("DATA twice", KeybagParts(records: [data, data, sign]).bytes, .malformed, at: dataEnd),
      Fault("SIGN twice", KeybagParts(records: [data, sign, sign]).bytes, .malformed, at: dataEnd + 28),
      Fault("a short SIGN", KeybagParts(records: [data, ("SIGN", [1])]).bytes, .malformed, at: nil),
      Fault("a bag inside that is cut short", KeybagParts(records: [("DATA", [0x56]), sign]).bytes, .truncated, at: 0),
    ]
    for fault in faults { fault.check(.keybag, SignedKeybag.init(parsing:)) }
    let bag = try Keybag(parsing: KeybagParts.valid.bytes)
    #expect(throws: FormatError.self) { try SignedKeybag(bag, signature: [1]) }
  }
}
