import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules
import Testing

@testable import Backups

@Suite("Comparisons of encrypted items")
struct EncryptedDifferenceTests {
  /// Creates an undecryptable entry, by default a generic password that only its device can decrypt.
  ///
  /// - Parameters:
  ///   - bytes: The encrypted data of the item, or `nil` if it is unknown.
  ///   - reference: A byte that determines the persistent reference, or `nil` if there is none.
  private func encrypted(
    _ index: Int, stored bytes: [UInt8]? = nil, reference: UInt8? = nil, _ reason: Reason = .deviceBound,
    kind: ItemKind = .genericPassword, _ protection: ProtectionClass? = .whenUnlockedThisDeviceOnly
  ) throws -> KeychainEntry {
    let persistentReference = try reference.map {
      try PersistentReference.uuid(kind, [UInt8](repeating: $0, count: 16)).serialized()
    }
    let entry = KeychainEntry(
      index: index, undecryptable: ItemDescriptor(undecryptable: kind), protection: protection,
      persistentReference: persistentReference, reason: reason)
    return entry.withFingerprint(try bytes.map { try ItemFingerprint(of: $0) })
  }

  private func decrypted(
    _ index: Int, stored bytes: [UInt8]? = nil, _ account: String = "token"
  ) throws -> KeychainEntry {
    KeychainEntry(index: index, item: .password(account, .whenUnlockedThisDeviceOnly))
      .withFingerprint(try bytes.map { try ItemFingerprint(of: $0) })
  }

  @Test("Encrypted items with identical bytes are equal, in any order, and each is paired only once")
  func identicalBytes() throws {
    let difference = try KeychainDifference(
      from: [encrypted(0, stored: [1]), encrypted(1, stored: [2]), encrypted(2, stored: [2])],
      to: [encrypted(0, stored: [2]), encrypted(1, stored: [1]), encrypted(2, stored: [2])])
    #expect(difference.undecrypted == .init(identicalCount: 3) && difference.sameCount == 3)
    #expect(difference.isEmpty && difference.isComplete && difference.unknownCount == 0)
  }

  @Test("Of two encrypted items with identical bytes, one is unknown if the other keychain has only one of them")
  func fewerIdenticalItems() throws {
    let difference = try KeychainDifference(
      from: [encrypted(0, stored: [2]), encrypted(1, stored: [2])], to: [encrypted(0, stored: [2])])
    #expect(difference.undecrypted == .init(identicalCount: 1, onlyInFirst: 1))
    #expect(difference.unknownCount == 1 && !difference.isComplete)
  }

  @Test("Encrypted items of different kinds, or without bytes, are not equal")
  func otherKind() throws {
    let ofDifferentKinds = try KeychainDifference(
      from: [encrypted(0, stored: [1])], to: [encrypted(0, stored: [1], kind: .key)])
    #expect(ofDifferentKinds.undecrypted == .init(onlyInFirst: 1, onlyInSecond: 1))
    #expect(ofDifferentKinds.unknownCount == 2)
    let withoutBytes = try KeychainDifference(from: [encrypted(0)], to: [encrypted(0)])
    #expect(withoutBytes.sameCount == 0)
  }

  @Test("An item that is encrypted in one keychain and decrypted in the other is equal if the bytes are identical")
  func decryptedInOne() throws {
    for (first, second) in [
      ([try decrypted(0, stored: [1])], [try encrypted(0, stored: [1])]),
      ([try encrypted(0, stored: [1])], [try decrypted(0, stored: [1])]),
    ] {
      let difference = try KeychainDifference(from: first, to: second)
      #expect(difference.undecrypted == .init(identicalCount: 1) && difference.sameCount == 1)
      #expect(difference.possiblyInSecond.isEmpty && difference.possiblyInFirst.isEmpty && difference.isComplete)
    }
  }

  @Test("Items that are damaged in both copies are equal, and those damaged in only one are not")
  func damage() throws {
    let damagedInBoth = try KeychainDifference(
      from: [encrypted(0, stored: [1], .tagMismatch)], to: [encrypted(0, stored: [1], .tagMismatch)])
    #expect(damagedInBoth.undecrypted == .init(identicalCount: 1, identicalDamagedCount: 1))
    #expect(damagedInBoth.isComplete)
    // With another keybag, an item with the same bytes can be damaged.
    let damagedInSecond = try KeychainDifference(
      from: [decrypted(0, stored: [1])], to: [encrypted(0, stored: [1], .tagMismatch)])
    #expect(damagedInSecond.undecrypted == .init(onlyInSecond: 1, damaged: 1) && damagedInSecond.sameCount == 0)
    let withoutKeyInSecond = try KeychainDifference(
      from: [encrypted(0, stored: [1])], to: [encrypted(0, stored: [1], .noClassKey)])
    #expect(withoutKeyInSecond.undecrypted.identicalCount == 0 && withoutKeyInSecond.undecrypted.damaged == 1)
  }

  @Test("Encrypted items of the same kind and class in both keychains may be the same, and are counted once")
  func possiblePairs() throws {
    let first = try [encrypted(0, stored: [1]), encrypted(1, stored: [2]), encrypted(2, stored: [3], kind: .key)]
    let second = try [
      encrypted(0, stored: [4]), encrypted(1, stored: [5], kind: .key), encrypted(2, stored: [6], kind: .key),
    ]
    let difference = try KeychainDifference(from: first, to: second)
    // The first keychain has two passwords and one key, the second one password and two keys.
    #expect(difference.undecrypted == .init(onlyInFirst: 3, onlyInSecond: 3, possiblePairs: 2))
    #expect(difference.undecrypted.total == 4 && difference.unknownCount == 4)
  }

  @Test("Encrypted items of different classes are counted as two")
  func differentClasses() throws {
    let difference = try KeychainDifference(
      from: [encrypted(0)], to: [encrypted(0, .deviceBound, .afterFirstUnlockThisDeviceOnly)])
    #expect(difference.unknownCount == 2)
  }

  @Test("Encrypted items with different references are counted as two")
  func differentReferences() throws {
    let difference = try KeychainDifference(
      from: [encrypted(0, reference: 1), encrypted(1, reference: 2)],
      to: [encrypted(0, reference: 1), encrypted(1, reference: 3)])
    #expect(difference.undecrypted == .init(inBoth: 1, onlyInFirst: 1, onlyInSecond: 1))
    #expect(difference.unknownCount == 3)
  }

  @Test("An encrypted item without a reference may be the same as one with a reference, and is counted once")
  func missingReference() throws {
    let difference = try KeychainDifference(
      from: [encrypted(0, reference: 1), encrypted(1, reference: 2)], to: [encrypted(0, reference: 1), encrypted(1)])
    #expect(difference.unknownCount == 2)
  }

  @Test("A decrypted item that may be the encrypted item of the other keychain is counted once")
  func decryptedAndEncrypted() throws {
    let withOneDecrypted = try KeychainDifference(from: [encrypted(0)], to: [decrypted(0)])
    #expect(withOneDecrypted.unknownCount == 1)
    let withTwoDecrypted = try KeychainDifference(
      from: [encrypted(0)], to: [decrypted(0, "anna"), decrypted(1, "berta")])
    #expect(withTwoDecrypted.unknownCount == 2)
  }

  @Test("Two keychains with one decrypted and one encrypted item each have two unknown items")
  func decryptedAndEncryptedInBoth() throws {
    let difference = try KeychainDifference(
      from: [encrypted(0), decrypted(1, "anna")], to: [decrypted(0, "berta"), encrypted(1)])
    #expect(difference.possiblyInSecond.count == 1 && difference.possiblyInFirst.count == 1)
    #expect(difference.unknownCount == 2)
  }
}
