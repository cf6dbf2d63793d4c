import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules
import Testing

@testable import Backups

@Suite("Encrypted items of two backups that are compared")
struct SealedDifferenceTests {
  /// A generic password of one device, which only that opens.
  private func sealed(
    _ index: Int, stored bytes: [UInt8]? = nil, reference: UInt8? = nil, _ reason: Reason = .deviceBound,
    kind: ItemKind = .genericPassword, _ protection: ProtectionClass? = .whenUnlockedThisDeviceOnly
  ) throws -> KeychainEntry {
    let item = KeychainEntry(
      index: index, sealed: ItemIdentity(sealed: kind), protection: protection,
      persistentReference: try reference.map {
        try PersistentReference.uuid(kind, [UInt8](repeating: $0, count: 16)).serialized()
      }, reason: reason)
    return item.stored(as: try bytes.map { try ItemFingerprint(of: $0) })
  }

  private func open(_ index: Int, stored bytes: [UInt8]? = nil, _ account: String = "token") throws -> KeychainEntry {
    KeychainEntry(index: index, item: .password(account, .whenUnlockedThisDeviceOnly))
      .stored(as: try bytes.map { try ItemFingerprint(of: $0) })
  }

  @Test("are the same where both are stored alike byte for byte, in any order, each with one partner")
  func alike() throws {
    let difference = try KeychainDifference(
      from: [sealed(0, stored: [1]), sealed(1, stored: [2]), sealed(2, stored: [2])],
      to: [sealed(0, stored: [2]), sealed(1, stored: [1]), sealed(2, stored: [2])])
    #expect(difference.sealed == .init(alike: 3) && difference.sameCount == 3)
    #expect(difference.isEmpty && difference.isComplete && difference.unknownCount == 0)
    let fewer = try KeychainDifference(
      from: [sealed(0, stored: [2]), sealed(1, stored: [2])], to: [sealed(0, stored: [2])])
    #expect(fewer.sealed == .init(alike: 1, onlyInFirst: 1) && fewer.unknownCount == 1 && !fewer.isComplete)
  }

  @Test("are not the same for bytes that stand in the array of another kind, or for none at all")
  func otherKind() throws {
    let kinds = try KeychainDifference(
      from: [sealed(0, stored: [1])], to: [sealed(0, stored: [1], kind: .key)])
    #expect(kinds.sealed == .init(onlyInFirst: 1, onlyInSecond: 1) && kinds.unknownCount == 2)
    #expect(try KeychainDifference(from: [sealed(0)], to: [sealed(0)]).sameCount == 0)
  }

  @Test("are the same as what opens on the other side out of the same bytes, and are in doubt nowhere")
  func openOnOneSide() throws {
    for (first, second) in [
      ([try open(0, stored: [1])], [try sealed(0, stored: [1])]),
      ([try sealed(0, stored: [1])], [try open(0, stored: [1])]),
    ] {
      let difference = try KeychainDifference(from: first, to: second)
      #expect(difference.sealed == .init(alike: 1) && difference.sameCount == 1)
      #expect(difference.doubtfulInFirst.isEmpty && difference.doubtfulInSecond.isEmpty && difference.isComplete)
    }
  }

  @Test("are the same where both copies are damaged alike, and not where one of them alone is")
  func damage() throws {
    let alike = try KeychainDifference(
      from: [sealed(0, stored: [1], .tagMismatch)], to: [sealed(0, stored: [1], .tagMismatch)])
    #expect(alike.sealed == .init(alike: 1, damagedAlike: 1) && alike.isComplete)
    // The same bytes beside another keybag: what opens in one backup is lost in the other.
    let lost = try KeychainDifference(
      from: [open(0, stored: [1])], to: [sealed(0, stored: [1], .tagMismatch)])
    #expect(lost.sealed == .init(onlyInSecond: 1, damaged: 1) && lost.sameCount == 0)
    let keyless = try KeychainDifference(
      from: [sealed(0, stored: [1])], to: [sealed(0, stored: [1], .noClassKey)])
    #expect(keyless.sealed.alike == 0 && keyless.sealed.damaged == 1)
  }

  @Test("of one kind and class may be one of either side, and are counted once then")
  func once() throws {
    let first = try [sealed(0, stored: [1]), sealed(1, stored: [2]), sealed(2, stored: [3], kind: .key)]
    let second = try [sealed(0, stored: [4]), sealed(1, stored: [5], kind: .key), sealed(2, stored: [6], kind: .key)]
    let difference = try KeychainDifference(from: first, to: second)
    // Two passwords against one, one key against two.
    #expect(difference.sealed == .init(onlyInFirst: 3, onlyInSecond: 3, possiblePairs: 2))
    #expect(difference.sealed.total == 4 && difference.unknownCount == 4)
  }

  @Test("of both classes or of two references of one device are two items, and are counted as such")
  func apart() throws {
    let classes = try KeychainDifference(
      from: [sealed(0)], to: [sealed(0, .deviceBound, .afterFirstUnlockThisDeviceOnly)])
    #expect(classes.unknownCount == 2)
    let references = try KeychainDifference(
      from: [sealed(0, reference: 1), sealed(1, reference: 2)], to: [sealed(0, reference: 1), sealed(1, reference: 3)])
    #expect(references.sealed == .init(inBoth: 1, onlyInFirst: 1, onlyInSecond: 1) && references.unknownCount == 3)
    // One without a reference may be either.
    let nameless = try KeychainDifference(
      from: [sealed(0, reference: 1), sealed(1, reference: 2)], to: [sealed(0, reference: 1), sealed(1)])
    #expect(nameless.unknownCount == 2)
  }

  @Test("and what may be encrypted among them count once, and two that open are never one")
  func doubtful() throws {
    let one = try KeychainDifference(from: [sealed(0)], to: [open(0)])
    #expect(one.unknownCount == 1)
    let crossed = try KeychainDifference(from: [sealed(0), open(1, "anna")], to: [open(0, "berta"), sealed(1)])
    #expect(crossed.doubtfulInFirst.count == 1 && crossed.doubtfulInSecond.count == 1)
    #expect(crossed.unknownCount == 2)
    let more = try KeychainDifference(from: [sealed(0)], to: [open(0, "anna"), open(1, "berta")])
    #expect(more.unknownCount == 2)
  }
}
