import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainCrypto

/// The layout of an archive in a database item. It is a binary property list of fewer than 256 objects.
///
/// At its end are the offsets of its objects and a trailer of 32 bytes:
///
///     unused, size of an offset, size of a reference, number of objects, root, start of the offsets
///          6                  1                    1                  8     8                      8
private struct ArchiveLayout {
  private static let trailerSize = 32
  private static let unusedTrailerSize = 6

  /// Objects by their position in the archives that `NSKeyedArchiver` writes.
  private enum ObjectIndex {
    static let objectList = 6
    static let null = 7
    static let classDescription = 20
    static let classesKey = 22
    static let classList = 24
    static let classNames = 25...27
  }

  private let bytes: [UInt8]
  private let trailer: Int
  private let offsetTable: Int
  private let offsetSize: Int

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    trailer = bytes.count - Self.trailerSize
    offsetSize = Int(bytes[trailer + 6])
    offsetTable = bytes[(trailer + 24)...].reduce(0) { $0 << 8 | Int($1) }
  }

  /// The positions of the bytes that the reader ignores.
  var ignoredBytes: Set<Int> {
    // The reader follows neither the first object nor the list of classes.
    let ignoredObjects =
      [ObjectIndex.null, ObjectIndex.classesKey, ObjectIndex.classList] + Array(ObjectIndex.classNames)
    var ignored: Set<Int> = []
    for object in ignoredObjects {
      ignored.formUnion(offset(of: object)..<offset(of: object + 1))
      ignored.formUnion(entry(of: object))
    }
    // A list is a marker and references. A dictionary of two members is a marker, two keys and two values.
    let classDescription = offset(of: ObjectIndex.classDescription)
    ignored.formUnion([
      offset(of: ObjectIndex.objectList) + 1,  // The first object, "$null".
      classDescription + 2,  // The second key, "$classes".
      classDescription + 4,  // The second value, the list of classes.
    ])
    ignored.formUnion(trailer..<trailer + Self.unusedTrailerSize)
    return ignored
  }

  /// The bytes of an object's offset in the table.
  private func entry(of object: Int) -> Range<Int> {
    let start = offsetTable + object * offsetSize
    return start..<start + offsetSize
  }

  private func offset(of object: Int) -> Int { bytes[entry(of: object)].reduce(0) { $0 << 8 | Int($1) } }
}

@Suite("Damaged database items")
struct DatabaseItemDamageTests {
  private let vector: DatabaseItemVector
  private let blob: [UInt8]
  private let keys: DatabaseKeys

  init() throws {
    vector = try #require(DatabaseItemVector.all().first { $0.name == "v8-ff" })
    blob = try vector.blob
    keys = try vector.keys()
  }

  /// The bytes in which some flipped bits have no effect, by reason.
  private func bytesWithoutEffect() throws -> [String: Set<Int>] {
    let item = try DatabaseItemBlob(parsing: blob)
    let wrappedKey = try #require(item.secret.keyWrap?.wrappedKey.revealed)
    // The next field, the type of the wrap, starts with its field number.
    let typeFieldStart = try #require(offset(of: wrappedKey)) + wrappedKey.count
    return [
      "the top bit of the version word, which no writer sets": [3],
      "the key generation": [blob.count - 1],
      "the number of a field whose value is its default": [typeFieldStart],
      "names, the list of classes and unused bytes of an archive": try ignoredBytes(
        of: [item.secret.box, item.attributes.box, item.attributes.wrappedKey]),
    ]
  }

  /// The positions of bytes in these archives of the blob that the reader ignores.
  private func ignoredBytes(of archives: [[UInt8]]) throws -> Set<Int> {
    var ignored: Set<Int> = []
    for archive in archives {
      let start = try #require(offset(of: archive))
      ignored.formUnion(ArchiveLayout(archive).ignoredBytes.map { start + $0 })
    }
    return ignored
  }

  private func offset(of part: [UInt8]) -> Int? {
    (0...(blob.count - part.count)).first { blob[$0..<($0 + part.count)].elementsEqual(part) }
  }

  @Test("An item with a flipped bit is rejected, or unchanged if the bit is unused (15,824 bits; 400 in a quick run)")
  func everyBit() throws {
    let withoutEffect = try bytesWithoutEffect().values.reduce(into: Set<Int>()) { $0.formUnion($1) }
    let before = try keys.open(row: blob, kind: .genericPassword)
    var acceptedCount = 0
    for bit in Cases.chosen(0..<blob.count * 8, quick: 400) {
      let after = try keys.open(row: blob.flipping(bit: bit), kind: .genericPassword)
      if let item = after.item {
        #expect(isSame(item, after.isOpen ? before.item : withoutSecrets(before)), "bit \(bit)")
        #expect(after.accessControl == before.accessControl)
      }
      guard after.isOpen else { continue }
      acceptedCount += 1
      #expect(withoutEffect.contains(bit / 8), "bit \(bit) of byte \(bit / 8)")
    }
    // Without accepted items, the list of bytes would prove nothing.
    #expect(acceptedCount > 0)
  }

  private func withoutSecrets(_ opened: DecryptedDatabaseItem) -> KeychainItem? {
    var item = opened.item
    item?.secrets = [:]
    return item
  }

  @Test("A truncated item is malformed, and no part is decrypted (1,977 lengths; 100 in a quick run)")
  func everyLength() throws {
    for count in Cases.chosen(0..<blob.count, quick: 100) {
      let opened = try keys.open(row: Array(blob.prefix(count)), kind: .genericPassword)
      // Without its last field, the class, the message is valid and has class 12, whose key is missing.
      let verdict: DatabaseItemVerdict = count == blob.count - 2 ? .noClassKey : .malformed
      #expect(opened.verdict == verdict, "\(count) bytes")
      #expect(opened.item == nil)
    }
  }

  @Test("The error for a wrapped key without its class key contains the class, but no key and no secret")
  func reasons() throws {
    let deviceKeys = try DatabaseKeys(wrappedMetadataKeys: [
      .whenUnlocked: SensitiveBytes(copying: Array(repeating: 7, count: 40))
    ])
    let fault = try #require(try deviceKeys.open(row: blob, kind: .genericPassword).fault)
    #expect(fault.step == .metadataClassKey)
    #expect(fault.reason == "the key is wrapped by a device, and the key of class 6 is missing")
  }
}

@Suite("Encrypting database items")
struct DatabaseItemSealingTests {
  private static let wrappings: [DatabaseKeyWrapping] = [.simulator(.upToIOS12), .simulator(.sinceIOS13), .classKey]

  @Test(
    "Items of every class, secret length and key store survive a round trip (280 each; 30 in a quick run)",
    arguments: wrappings)
  func roundTrip(_ wrapping: DatabaseKeyWrapping) throws {
    let random = SeededRandomSource(seed: "database items")
    var secrets = SeededRandom(seed: 20)
    for index in Cases.chosen(0..<280, quick: 30) {
      let protection = ProtectionClass.allCases[index % ProtectionClass.allCases.count]
      let classKey = SensitiveBytes(copying: try random.bytes(32))
      let classKeyOnly = try DatabaseKeys(classKeys: [protection.keyClass: classKey])
      let metadataKey = try classKeyOnly.wrap(Secret(count: 32, from: random), for: protection, wrapping)
      let keys = try DatabaseKeys(
        wrappedMetadataKeys: [protection.keyClass: metadataKey], classKeys: [protection.keyClass: classKey])
      var item = KeychainItem.genericPassword("account \(index)", as: protection).with([
        .synchronizable: .integer(0), .tombstone: .integer(0), .multiUser: .data([]), .persistentReference: .data([]),
        "newer": .string("kept as it is"),
      ])
      item.secret = SensitiveBytes(copying: secrets.bytes(index % 40))
      item[.digest] = .data(try item.digest())

      let blob = try keys.seal(item, version: index % 2 == 0 ? .v7 : .v8, wrapping: wrapping, random: random)
      let opened = try keys.open(row: blob.serialized(), kind: .genericPassword)

      #expect(opened.verdict == .open, "\(index): \(String(describing: opened.fault))")
      #expect(isSame(opened.item, item))
      #expect(opened.accessControl == ItemAccessControl(protection: protection))
      #expect(opened.findings.isEmpty)
    }
  }

  @Test("An unwrapped key decrypts the secret, and a key of a wrong length does not")
  func unwrappedKey() throws {
    let vector = try #require(DatabaseItemVector.all().first { $0.wrapping == .classKey })
    let inputs = try vector.vector["inputs"]
    let keys = try DatabaseKeys(metadataKeys: [vector.keyClass: SensitiveBytes(inputs["metadata_class_key"])])
    let secretKey = try SensitiveBytes(inputs["secret_key"])

    let openedWithoutKey = try keys.open(row: vector.blob, kind: vector.item.kind)
    let openedWithKey = try keys.open(row: vector.blob, kind: vector.item.kind, secretKey: secretKey)
    let openedWithShortKey = try keys.open(
      row: vector.blob, kind: vector.item.kind, secretKey: SensitiveBytes(copying: [1, 2, 3]))

    #expect(openedWithoutKey.verdict == .noClassKey && openedWithoutKey.item != nil)
    #expect(openedWithKey.isOpen && isSame(openedWithKey.item, vector.item))
    #expect(openedWithShortKey.fault?.step == .secretKey && openedWithShortKey.verdict == .malformed)
  }

  @Test("Only the last byte determines the length of the padding, as in Apple's reader")
  func padding() throws {
    // Apple's reader takes the last byte as `int8_t paddingLength` and drops that many bytes.
    func padded(zeroCount: Int, last: UInt8) -> [UInt8] {
      [1, 2, 3] + [UInt8](repeating: 0, count: zeroCount) + [last]
    }
    let cases: [(padded: [UInt8], plainCount: Int?)] = [
      ([1, 2, 3] + [UInt8](repeating: 17, count: 17), 3), ([1, 2, 3, 9, 8, 3], 3), ([1, 2, 3, 1], 3),
      ([1, 2, 3, 2, 0, 3], 3),
      // Padding that is shorter or longer than its last byte says.
      ([1, 2, 3, 0, 0, 4], 2), ([1, 2, 3, 0], 4), ([1, 2, 3, 0, 6], nil), ([], nil),
      // 127 is the maximum of `int8_t`.
      (padded(zeroCount: 126, last: 127), 3), (padded(zeroCount: 200, last: 128), nil), ([1, 2, 3, 255], nil),
    ]
    for (padded, plainCount) in cases {
      let result = padded.withUnsafeBytes { DatabaseKeys.countWithoutPadding($0) }
      #expect(result == plainCount, "\(padded)")
    }
  }

  @Test("An item with unusual padding is decrypted, and an item with a wrong padding length is rejected")
  func unusualPadding() throws {
    let vector = try #require(DatabaseItemVector.all().first)
    let keys = try vector.keys()
    let cases: [(padding: [UInt8], isDecrypted: Bool)] = [
      ([1], true), ([9, 8, 3], true), ([UInt8](repeating: 0, count: 30) + [31], true), ([0, 0, 2], false),
      ([200], false),
    ]
    for (padding, isDecrypted) in cases {
      let blob = try encrypt(vector, secretPadding: padding)
      let opened = try keys.open(row: blob.serialized(), kind: vector.item.kind)
      #expect(opened.isOpen == isDecrypted, "\(padding)")
      if isDecrypted { #expect(isSame(opened.item, vector.item), "\(padding)") }
    }
  }

  /// Encrypts the item of a vector with the given bytes as the padding of its secret.
  private func encrypt(_ vector: DatabaseItemVector, secretPadding: [UInt8]) throws -> DatabaseItemBlob {
    let original = try DatabaseItemBlob(parsing: vector.blob)
    let randomValues = try vector.randomValues()
    let padded = try SensitiveBytes(copying: vector.vector["expect"]["secret_der"].bytes + secretPadding)
    let nonce = randomValues.nonces.secret
    let sealed = try vector.keys().withCipher { cipher in
      try cipher.seal(padded, key: randomValues.secretKey, nonce: nonce)
    }
    let box = try ArchivedBox(nonce: nonce, ciphertext: sealed.ciphertext, tag: sealed.tag).archive()
    return try DatabaseItemBlob(
      version: original.version, keyClass: original.keyClass, attributes: original.attributes,
      secret: .init(box: box, keyWrap: original.secret.keyWrap, tamperCheck: original.secret.tamperCheck))
  }

  @Test("An item whose access control has another class cannot be encrypted")
  func otherClass() throws {
    let vector = try #require(DatabaseItemVector.all().first)
    let error = #expect(throws: ItemCryptoError.self) {
      _ = try vector.keys().seal(
        vector.item, accessControl: ItemAccessControl(protection: .always), wrapping: vector.wrapping)
    }
    #expect(error?.reason == "its class differs from the item's")
  }
}
