import Basics
import KeychainFormats
import TestSupport
import Testing

/// A small keybag as records, so that a test can damage one of them.
///
/// A record is a tag of four letters, the length of the value as a big-endian number of four bytes, and the value.
struct KeybagParts {
  /// A record of the valid keybag. The raw value is its position.
  enum Field: Int, CaseIterable {
    // The header.
    case version, type, uuid, hmacKey, wrap, salt, iterations, secondStepType, secondStepIterations, secondStepSalt
    // The only class key.
    case classUUID, keyClass, classWrap, keyType, wrappedKey

    var isInHeader: Bool { rawValue < KeybagParts.header.count }
  }

  var records: [(tag: String, value: [UInt8])]

  static let header: [(tag: String, value: [UInt8])] = [
    ("VERS", [0, 0, 0, 4]), ("TYPE", [0, 0, 0, 1]), ("UUID", [UInt8](repeating: 0x11, count: 16)),
    ("HMCK", [UInt8](repeating: 0, count: 40)), ("WRAP", [0, 0, 0, 0]), ("SALT", [UInt8](repeating: 0x22, count: 20)),
    ("ITER", [0, 0, 0x27, 0x10]), ("DPWT", [0, 0, 0, 1]), ("DPIC", [0, 0, 0x03, 0xE8]),
    ("DPSL", [UInt8](repeating: 0x33, count: 20)),
  ]
  static let classKey: [(tag: String, value: [UInt8])] = [
    ("UUID", [UInt8](repeating: 0x44, count: 16)), ("CLAS", [0, 0, 0, 6]), ("WRAP", [0, 0, 0, 2]),
    ("KTYP", [0, 0, 0, 0]), ("WPKY", [UInt8](repeating: 0x55, count: 40)),
  ]

  static let valid = KeybagParts(records: header + classKey)

  var bytes: [UInt8] {
    var bytes: [UInt8] = []
    for record in records {
      bytes += Array(record.tag.utf8)
      bytes += [UInt8](bigEndian: record.value.count, count: 4)
      bytes += record.value
    }
    return bytes
  }

  subscript(_ field: Field) -> (tag: String, value: [UInt8]) {
    get { records[field.rawValue] }
    set { records[field.rawValue] = newValue }
  }

  func byteCount(of field: Field) -> Int { 8 + self[field].value.count }

  func offset(of field: Field) -> Int { records[..<field.rawValue].reduce(0) { $0 + 8 + $1.value.count } }

  func offset(after field: Field) -> Int { offset(of: field) + byteCount(of: field) }

  func removing(_ field: Field) -> [UInt8] {
    var copy = self
    copy.records.remove(at: field.rawValue)
    return copy.bytes
  }

  func repeating(_ field: Field) -> [UInt8] {
    var copy = self
    copy.records.insert(self[field], at: field.rawValue + 1)
    return copy.bytes
  }

  func setting(_ field: Field, to value: [UInt8]) -> [UInt8] {
    var copy = self
    copy[field].value = value
    return copy.bytes
  }
}

@Suite("Keybags with one fault")
struct KeybagFaultTests {
  private static let bag = KeybagParts.valid
  private static let bytes = bag.bytes
  private static let headerEnd = bag.offset(after: .secondStepSalt)

  /// Returns a keybag without a field. The error has the offset at which the header or the class key ends.
  private static func missing(_ field: KeybagParts.Field) -> FaultyInput {
    let end = field.isInHeader ? headerEnd : bytes.count
    return FaultyInput(
      "no \(bag[field].tag) (\(field))", bag.removing(field), .malformed, at: end - bag.byteCount(of: field))
  }

  private static func repeated(_ field: KeybagParts.Field) -> FaultyInput {
    FaultyInput("\(bag[field].tag) twice (\(field))", bag.repeating(field), .malformed, at: bag.offset(after: field))
  }

  private static func shortened(_ field: KeybagParts.Field) -> FaultyInput {
    FaultyInput(
      "\(bag[field].tag) a byte short (\(field))", bag.setting(field, to: bag[field].value.dropLast()), .malformed,
      at: bag.offset(of: field))
  }

  static let faultyInputs: [FaultyInput] =
    [
      FaultyInput("no bytes", [], .truncated, at: 0),
      FaultyInput("half a tag", [0x56, 0x45], .truncated, at: 0),
      FaultyInput("a tag without a length", Array("VERS".utf8) + [0, 0], .truncated, at: 4),
      FaultyInput("a length past the end", Array("VERS".utf8) + [0, 0, 0, 5, 0, 0, 0, 4], .truncated, at: 8),
      FaultyInput("the largest length", Array("VERS".utf8) + [0xFF, 0xFF, 0xFF, 0xFF], .truncated, at: 8),
      FaultyInput("three bytes after the last record", bytes + [0, 0, 0], .truncated, at: bytes.count),
      FaultyInput("the last record cut short", bytes.dropLast(), .truncated, at: bytes.count - 40),
      FaultyInput(
        "a key of 32 bytes, which the password wraps", bag.setting(.wrappedKey, to: .init(repeating: 0, count: 32)),
        .malformed, at: bag.offset(of: .wrappedKey)),
      FaultyInput(
        "a key of 40 bytes, which only the device wraps", bag.setting(.classWrap, to: [0, 0, 0, 1]), .malformed,
        at: bag.offset(of: .wrappedKey)),
      FaultyInput(
        "a Curve25519 class without its public key", bag.setting(.keyType, to: [0, 0, 0, 1]), .malformed,
        at: bytes.count),
      FaultyInput(
        "a class twice", KeybagParts(records: bag.records + KeybagParts.classKey).bytes, .malformed, at: bytes.count),
    ]
  /// The iterations and the salt of the second step may be missing only together.
  static let missingFields = [
    KeybagParts.Field.version, .type, .hmacKey, .wrap, .salt, .iterations, .secondStepIterations, .secondStepSalt,
    .keyClass, .classWrap, .wrappedKey,
  ].map(missing)
  /// A second UUID is not a fault: it begins a class key.
  static let repeatedFields = KeybagParts.Field.allCases.filter { $0 != .uuid && $0 != .classUUID }.map(repeated)
  static let shortenedFields = KeybagParts.Field.allCases.map(shortened)

  @Test(
    "A keybag with a fault is rejected with the name of the field and the offset",
    arguments: faultyInputs + missingFields + repeatedFields + shortenedFields)
  func rejected(_ input: FaultyInput) {
    input.check(.keybag) { bytes throws(FormatError) in try Keybag(parsing: bytes).validate() }
  }

  @Test("The keybag without a fault is valid and survives a round trip byte for byte")
  func valid() throws {
    let bag = try Keybag(parsing: Self.bytes)
    try bag.validate()
    #expect(bag.serialized() == Self.bytes)
    #expect(bag.uuidText == "11111111-1111-1111-1111-111111111111")
    #expect(bag.secondStep == Keybag.SecondStep(iterations: 1000, salt: [UInt8](repeating: 0x33, count: 20)))
  }

  @Test(
    "A derivation parameter that occurs twice is a fault only if its two values differ",
    arguments: [
      (.hmacKey, false), (.salt, true), (.iterations, true), (.secondStepIterations, true), (.secondStepSalt, true),
    ] as [(KeybagParts.Field, Bool)])
  func derivation(field: KeybagParts.Field, isFault: Bool) throws {
    var parts = Self.bag
    let (tag, headerCount) = (parts[field].tag, KeybagParts.header.count)
    parts.records.insert(parts[field], at: headerCount)
    #expect(try Keybag(parsing: parts.bytes).derivationFault == nil)
    parts.records[headerCount].value[0] ^= 1
    let fault = try Keybag(parsing: parts.bytes).derivationFault
    #expect(fault == (isFault ? "its \(tag) occurs twice with different values" : nil))
  }

  @Test("64 kB and 64 class keys are read; one more byte or class key is rejected")
  func limits() throws {
    func keybag(byteCount: Int) -> [UInt8] {
      KeybagParts(records: [("ABCD", .init(repeating: 1, count: byteCount - 8))]).bytes
    }
    func keybag(classKeyCount: Int) -> [UInt8] {
      let emptyUUID: (tag: String, value: [UInt8]) = ("UUID", [])
      // The first UUID belongs to the header.
      return KeybagParts(records: Array(repeating: emptyUUID, count: 1 + classKeyCount)).bytes
    }
    let (byteLimit, keyLimit) = (Keybag.maximumByteCount, Keybag.maximumClassKeyCount)
    #expect(try Keybag(parsing: keybag(byteCount: byteLimit)).header.count == 1)
    #expect(try Keybag(parsing: keybag(classKeyCount: keyLimit)).classKeys.count == keyLimit)
    FaultyInput("too large", keybag(byteCount: byteLimit + 1), .overLimit, at: nil).check(
      .keybag, Keybag.init(parsing:))
    FaultyInput("too many", keybag(classKeyCount: keyLimit + 1), .overLimit, at: nil).check(
      .keybag, Keybag.init(parsing:))
  }

  @Test(
    "Truncating a keybag or flipping any of its bits does not crash the reader, and readable variants survive a round trip"
  )
  func damage() {
    readDamagedVariants(of: Self.bytes) { damaged in
      guard let bag = try? Keybag(parsing: damaged) else { return }
      #expect(bag.serialized() == damaged)
      try? bag.validate()
    }
  }
}

@Suite("Editing keybags")
struct KeybagChangeTests {
  /// A keybag with unknown records at the end of the header and of the class key.
  private let parts = KeybagParts(
    records: KeybagParts.header + [("GRCE", [1, 2, 3])] + KeybagParts.classKey + [("XXXX", []), ("XXXX", [9])])
  private let secondStepRecords =
    KeybagParts.Field.secondStepType.rawValue...KeybagParts.Field.secondStepSalt.rawValue

  @Test("A wrapped key is replaced in place, and the unknown records around it are preserved")
  func replacingKey() throws {
    var bag = try Keybag(parsing: parts.bytes)
    #expect(bag.serialized() == parts.bytes)
    let key = [UInt8](repeating: 0x99, count: 40)
    bag.classKeys[0].wrappedKey = key
    var expected = parts
    let index = try #require(expected.records.firstIndex { $0.tag == "WPKY" })
    expected.records[index].value = key
    #expect(bag.serialized() == expected.bytes)
    #expect(bag.classKey(.whenUnlocked)?.wrappedKey == key)
  }

  @Test("Removing the second step removes only its three records")
  func removingSecondStep() throws {
    var bag = try Keybag(parsing: parts.bytes)
    let salt = [UInt8](repeating: 0x77, count: 20)
    bag.secondStep = nil
    bag.salt = salt
    var expected = parts
    expected[.salt].value = salt
    expected.records.removeSubrange(secondStepRecords)
    #expect(bag.serialized() == expected.bytes)
    try bag.validate()
  }

  @Test("Adding a second step appends its records to the header")
  func addingSecondStep() throws {
    var withoutSecondStep = KeybagParts.valid
    withoutSecondStep.records.removeSubrange(secondStepRecords)
    var bag = try Keybag(parsing: withoutSecondStep.bytes)
    bag.secondStep = Keybag.SecondStep(iterations: 1000, salt: [UInt8](repeating: 0x33, count: 20))
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
    var changed = KeybagParts.valid
    changed[.type].value = [0x40, 0, 0, 0]
    changed[.keyClass].value = [0, 0, 0, 0x16]
    let bag = try Keybag(parsing: changed.bytes)
    #expect(bag.type == .system)
    #expect(bag.classKeys[0].keyClass == KeyClass(rawValue: 0x16))
    #expect(bag.classKey(.whenUnlocked) == nil)
  }

  @Test("A keybag cannot be created with a salt of 19 bytes or a duplicate class")
  func refusedFields() throws {
    func bag(saltByteCount: Int, classes: [KeyClass]) throws(FormatError) -> Keybag {
      try Keybag(
        type: .backup, uuid: .init(repeating: 1, count: 16), salt: .init(repeating: 2, count: saltByteCount),
        iterations: 1,
        classKeys: classes.map {
          .init(
            uuid: .init(repeating: 3, count: 16), keyClass: $0, wrap: .device,
            wrappedKey: .init(repeating: 4, count: 32))
        })
    }
    #expect(throws: FormatError.self) { try bag(saltByteCount: 19, classes: [.always]) }
    #expect(throws: FormatError.self) { try bag(saltByteCount: 20, classes: [.always, .always]) }
    #expect(try bag(saltByteCount: 20, classes: [.always]).classKeys.count == 1)
  }

  @Test("The description of a record contains no byte of its value")
  func quietDescriptions() throws {
    let bag = try Keybag(parsing: KeybagParts.valid.bytes)
    var text = ""
    dump(bag.classKeys, to: &text)
    // The bytes of the key are 0x55, which is 85.
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
    let signByteCount = 8 + signature.count
    let inputs = [
      FaultyInput("no DATA", KeybagParts(records: [sign]).bytes, .malformed, at: signByteCount),
      FaultyInput("no SIGN", KeybagParts(records: [data]).bytes, .malformed, at: dataEnd),
      FaultyInput("DATA twice", KeybagParts(records: [data, data, sign]).bytes, .malformed, at: dataEnd),
      FaultyInput(
        "SIGN twice", KeybagParts(records: [data, sign, sign]).bytes, .malformed, at: dataEnd + signByteCount),
      FaultyInput("a short SIGN", KeybagParts(records: [data, ("SIGN", [1])]).bytes, .malformed, at: nil),
      FaultyInput(
        "a bag inside that is cut short", KeybagParts(records: [("DATA", [0x56]), sign]).bytes, .truncated, at: 0),
    ]
    for input in inputs { input.check(.keybag, SignedKeybag.init(parsing:)) }
    let bag = try Keybag(parsing: KeybagParts.valid.bytes)
    #expect(throws: FormatError.self) { try SignedKeybag(bag, signature: [1]) }
  }
}
