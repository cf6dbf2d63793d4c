import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules
import Testing

@testable import Backups

@Suite("Comparisons of encrypted items")
struct EncryptedDifferenceTests {
  /// Creates a generic password that only its device can decrypt.
  private func encrypted(
    _ index: Int, stored bytes: [UInt8]? = nil, reference: UInt8? = nil, _ reason: Reason = .deviceBound,
    kind: ItemKind = .genericPassword, _ protection: ProtectionClass? = .whenUnlockedThisDeviceOnly
  ) throws -> KeychainEntry {
    let item = KeychainEntry(
      index: index, undecryptable: ItemDescriptor(undecryptable: kind), protection: protection,
      persistentReference: try reference.map {
        try PersistentReference.uuid(kind, [UInt8](repeating: $0, count: 16)).serialized()
      }, reason: reason)
    return item.stored(as: try bytes.map { try ItemFingerprint(of: $0) })
  }

  private func decrypted(_ index: Int, stored bytes: [UInt8]? = nil, _ account: String = "token") throws
    -> KeychainEntry
  {
    KeychainEntry(index: index, item: .password(account, .whenUnlockedThisDeviceOnly))
      .stored(as: try bytes.map { try ItemFingerprint(of: $0) })
  }

  @Test("Encrypted items with identical bytes are equal, in any order, and each has one partner")
  func alike() throws {
    let difference = try KeychainDifference(
      from: [encrypted(0, stored: [1]), encrypted(1, stored: [2]), encrypted(2, stored: [2])],
      to: [encrypted(0, stored: [2]), encrypted(1, stored: [1]), encrypted(2, stored: [2])])
    #expect(difference.undecrypted == .init(identicalCount: 3) && difference.sameCount == 3)
    #expect(difference.isEmpty && difference.isComplete && difference.unknownCount == 0)
    let fewer = try KeychainDifference(
      from: [encrypted(0, stored: [2]), encrypted(1, stored: [2])], to: [encrypted(0, stored: [2])])
    #expect(
      fewer.undecrypted == .init(identicalCount: 1, onlyInFirst: 1) && fewer.unknownCount == 1 && !fewer.isComplete)
  }

  @Test("Encrypted items of different kinds, or without bytes, are not equal")
  func otherKind() throws {
    let kinds = try KeychainDifference(
      from: [encrypted(0, stored: [1])], to: [encrypted(0, stored: [1], kind: .key)])
    #expect(kinds.undecrypted == .init(onlyInFirst: 1, onlyInSecond: 1) && kinds.unknownCount == 2)
    #expect(try KeychainDifference(from: [encrypted(0)], to: [encrypted(0)]).sameCount == 0)
  }

  @Test("An encrypted item equals a decrypted one with identical bytes, and is not undecided")
  func openOnOneSide() throws {
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
    let alike = try KeychainDifference(
      from: [encrypted(0, stored: [1], .tagMismatch)], to: [encrypted(0, stored: [1], .tagMismatch)])
    #expect(alike.undecrypted == .init(identicalCount: 1, identicalDamagedCount: 1) && alike.isComplete)
    // The same bytes with another keybag: an item can be decrypted in one backup and is damaged in the other.
    let lost = try KeychainDifference(
      from: [decrypted(0, stored: [1])], to: [encrypted(0, stored: [1], .tagMismatch)])
    #expect(lost.undecrypted == .init(onlyInSecond: 1, damaged: 1) && lost.sameCount == 0)
    let keyless = try KeychainDifference(
      from: [encrypted(0, stored: [1])], to: [encrypted(0, stored: [1], .noClassKey)])
    #expect(keyless.undecrypted.identicalCount == 0 && keyless.undecrypted.damaged == 1)
  }

  @Test("Encrypted items of the same kind and class may be the same, and are counted once")
  func once() throws {
    let first = try [encrypted(0, stored: [1]), encrypted(1, stored: [2]), encrypted(2, stored: [3], kind: .key)]
    let second = try [
      encrypted(0, stored: [4]), encrypted(1, stored: [5], kind: .key), encrypted(2, stored: [6], kind: .key),
    ]
    let difference = try KeychainDifference(from: first, to: second)
    // Two passwords against one, and one key against two.
    #expect(difference.undecrypted == .init(onlyInFirst: 3, onlyInSecond: 3, possiblePairs: 2))
    #expect(difference.undecrypted.total == 4 && difference.unknownCount == 4)
  }

  @Test("Encrypted items of different classes or references are counted as two")
  func apart() throws {
    let classes = try KeychainDifference(
      from: [encrypted(0)], to: [encrypted(0, .deviceBound, .afterFirstUnlockThisDeviceOnly)])
    #expect(classes.unknownCount == 2)
    let references = try KeychainDifference(
      from: [encrypted(0, reference: 1), encrypted(1, reference: 2)],
      to: [encrypted(0, reference: 1), encrypted(1, reference: 3)])
    #expect(references.undecrypted == .init(inBoth: 1, onlyInFirst: 1, onlyInSecond: 1) && references.unknownCount == 3)
    // An item without a reference may be either.
    let nameless = try KeychainDifference(
      from: [encrypted(0, reference: 1), encrypted(1, reference: 2)], to: [encrypted(0, reference: 1), encrypted(1)])
    #expect(nameless.unknownCount == 2)
  }

  @Test("Items that may be among the encrypted ones are counted once, and two decrypted items never are the same")
  func doubtful() throws {
    let one = try KeychainDifference(from: [encrypted(0)], to: [decrypted(0)])
    #expect(one.unknownCount == 1)
    let crossed = try KeychainDifference(
      from: [encrypted(0), decrypted(1, "anna")], to: [decrypted(0, "berta"), encrypted(1)])
    #expect(crossed.possiblyInSecond.count == 1 && crossed.possiblyInFirst.count == 1)
    #expect(crossed.unknownCount == 2)
    let more = try KeychainDifference(from: [encrypted(0)], to: [decrypted(0, "anna"), decrypted(1, "berta")])
    #expect(more.unknownCount == 2)
  }
}
