import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainCrypto

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
  private func harmless() throws -> [String: Set<Int>] {
    let item = try DatabaseItemBlob(parsing: blob)
    var unused: Set<Int> = []
    for archive in [item.secret.box, item.attributes.box, item.attributes.wrappedKey] {
      let start = try #require(offset(of: archive))
      let trailer = archive.count - 32
      let width = Int(archive[trailer + 6])
      let table = archive[(trailer + 24)...].reduce(0) { $0 << 8 | Int($1) }
      func begin(_ object: Int) -> Int {
        archive[(table + object * width)..<(table + (object + 1) * width)].reduce(0) { $0 << 8 | Int($1) }
      }
      // "$null", the key "$classes", the list of classes and its three names: the reader ignores them.
      for object in [7, 22, 24, 25, 26, 27] {
        unused.formUnion((begin(object)..<begin(object + 1)).map { start + $0 })
        unused.formUnion((0..<width).map { start + table + object * width + $0 })
      }
      // The references to them: from the list of objects and from the class.
      unused.formUnion([begin(6) + 1, begin(20) + 2, begin(20) + 4].map { start + $0 })
      unused.formUnion((trailer..<trailer + 6).map { start + $0 })
    }
    let wrap = try #require(item.secret.keyWrap?.wrappedKey.revealed)
    let type = try #require(offset(of: wrap)) + wrap.count
    return [
      "the top bit of the version word, which nobody writes": [3],
      "the key generation": [blob.count - 1],
      "the number of a field whose value is its default": [type],
      "names, the list of classes and unused bytes of an archive": unused,
    ]
  }

  private func offset(of part: [UInt8]) -> Int? {
    (0...(blob.count - part.count)).first { blob[$0..<($0 + part.count)].elementsEqual(part) }
  }

  @Test("An item with a flipped bit is rejected, or unchanged if the bit has no meaning (15,824; 400 in a quick run)")
  func everyBit() throws {
    let harmless = try harmless().values.reduce(into: Set<Int>()) { $0.formUnion($1) }
    let before = try keys.open(row: blob, kind: .genericPassword)
    var opened = 0
    for bit in Cases.chosen(0..<blob.count * 8, quick: 400) {
      let after = try keys.open(row: blob.flipping(bit: bit), kind: .genericPassword)
      if let item = after.item {
        #expect(isSame(item, after.isOpen ? before.item : openAttributes(of: before)), "bit \(bit)")
        #expect(after.accessControl == before.accessControl)
      }
      guard after.isOpen else { continue }
      opened += 1
      #expect(harmless.contains(bit / 8), "bit \(bit) of byte \(bit / 8)")
    }
    // Without accepted items, the list above would prove nothing.
    #expect(opened > 0)
  }

  private func openAttributes(of opened: DecryptedDatabaseItem) -> KeychainItem? {
    var item = opened.item
    item?.secrets = [:]
    return item
  }

  @Test("A truncated item is malformed, and nothing in it can be decrypted (1,977; 100 in a quick run)")
  func everyLength() throws {
    for count in Cases.chosen(0..<blob.count, quick: 100) {
      let opened = try keys.open(row: Array(blob.prefix(count)), kind: .genericPassword)
      // Without its last field, the class, the message is valid and has class 12, whose key is missing.
      let verdict: DatabaseItemVerdict = count == blob.count - 2 ? .noClassKey : .malformed
      #expect(opened.verdict == verdict, "\(count) bytes")
      #expect(opened.item == nil)
    }
  }

  @Test("The errors of a damaged item contain neither a key nor the secret")
  func reasons() throws {
    let other = try DatabaseKeys(wrappedMetadataKeys: [
      .whenUnlocked: SensitiveBytes(copying: Array(repeating: 7, count: 40))
    ])
    let fault = try #require(try other.open(row: blob, kind: .genericPassword).fault)
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
    var numbers = SeededRandom(seed: 20)
    for index in Cases.chosen(0..<280, quick: 30) {
      let protection = ProtectionClass.allCases[index % ProtectionClass.allCases.count]
      let classKey = SensitiveBytes(copying: try random.bytes(32))
      let wrapper = try DatabaseKeys(classKeys: [protection.keyClass: classKey])
      let metadataKey = try wrapper.wrap(Secret(count: 32, from: random), for: protection, wrapping)
      let keys = try DatabaseKeys(
        wrappedMetadataKeys: [protection.keyClass: metadataKey], classKeys: [protection.keyClass: classKey])
      var item = KeychainItem.genericPassword("account \(index)", as: protection).with([
        .synchronizable: .integer(0), .tombstone: .integer(0), .multiUser: .data([]), .persistentReference: .data([]),
        "newer": .string("kept as it is"),
      ])
      item.secret = SensitiveBytes(copying: numbers.bytes(index % 40))
      item[.digest] = .data(try item.digest())

      let blob = try keys.seal(item, version: index % 2 == 0 ? .v7 : .v8, wrapping: wrapping, random: random)
      let opened = try keys.open(row: blob.serialized(), kind: .genericPassword)

      #expect(opened.verdict == .open, "\(index): \(String(describing: opened.fault))")
      #expect(isSame(opened.item, item))
      #expect(opened.accessControl == ItemAccessControl(protection: protection))
      #expect(opened.findings.isEmpty)
    }
  }

  @Test("An unwrapped key decrypts the secret, and a key of another length does not")
  func givenKey() throws {
    let vector = try #require(DatabaseItemVector.all().first { $0.wrapping == .classKey })
    let inputs = try vector.vector["inputs"]
    let keys = try DatabaseKeys(metadataKeys: [vector.keyClass: SensitiveBytes(inputs["metadata_class_key"])])
    let given = try SensitiveBytes(inputs["secret_key"])

    let without = try keys.open(row: vector.blob, kind: vector.item.kind)
    let with = try keys.open(row: vector.blob, kind: vector.item.kind, secretKey: given)
    let short = try keys.open(
      row: vector.blob, kind: vector.item.kind, secretKey: SensitiveBytes(copying: [1, 2, 3]))

    #expect(without.verdict == .noClassKey && without.item != nil)
    #expect(with.isOpen && isSame(with.item, vector.item))
    #expect(short.fault?.step == .secretKey && short.verdict == .malformed)
  }

  @Test("Only the last byte determines the length of the padding, as in Apple's reader")
  func padding() throws {
    let plain: [UInt8] = [1, 2, 3]
    func count(_ padding: [UInt8]) -> Int? {
      (plain + padding).withUnsafeBytes { DatabaseKeys.countWithoutPadding($0) }
    }
    // `int8_t paddingLength` is the last byte; the plaintext ends that many bytes before the end.
    #expect(count([UInt8](repeating: 17, count: 17)) == 3)
    #expect(count([9, 8, 3]) == 3 && count([1]) == 3 && count([2, 0, 3]) == 3)
    #expect(count([0, 0, 4]) == 2 && count([0, 6]) == nil && count([0]) == 4)
    #expect(count([UInt8](repeating: 0, count: 126) + [127]) == 3)
    #expect(count([UInt8](repeating: 0, count: 200) + [128]) == nil && count([255]) == nil)
    #expect([].withUnsafeBytes { DatabaseKeys.countWithoutPadding($0) } == nil)

  }

  @Test(
    "An item with unusual padding is decrypted, and one without padding is rejected")
  func paddedOtherwise() throws {
    let vector = try #require(DatabaseItemVector.all().first)
    let (keys, item) = (try vector.keys(), try DatabaseItemBlob(parsing: vector.blob))
    let plain = try vector.vector["expect"]["secret_der"].bytes
    for (padding, isOpen) in [
      ([1], true), ([9, 8, 3], true), ([UInt8](repeating: 0, count: 30) + [31], true), ([0, 0, 2], false),
      ([200], false),
    ] as [([UInt8], Bool)] {
      let material = try vector.material()
      let sealed = try keys.withCipher { workspace in
        try workspace.seal(
          SensitiveBytes(copying: plain + padding), key: material.secretKey, nonce: material.nonces.secret)
      }
      let box = try ArchivedBox(nonce: material.nonces.secret, ciphertext: sealed.ciphertext, tag: sealed.tag).archive()
      let changed = try DatabaseItemBlob(
        version: item.version, keyClass: item.keyClass, attributes: item.attributes,
        secret: .init(box: box, keyWrap: item.secret.keyWrap, tamperCheck: item.secret.tamperCheck))
      let opened = try keys.open(row: changed.serialized(), kind: vector.item.kind)
      #expect(opened.isOpen == isOpen, "\(padding)")
      if isOpen { #expect(isSame(opened.item, vector.item), "\(padding)") }
    }
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
