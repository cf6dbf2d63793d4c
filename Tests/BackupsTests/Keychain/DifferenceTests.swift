import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules
import Testing

@testable import Backups

@Suite("Comparisons of keychains")
struct DifferenceTests {
  private func decrypted(_ items: KeychainItem..., from firstIndex: Int = 0) -> [KeychainEntry] {
    items.enumerated().map { KeychainEntry(index: firstIndex + $0, item: $1) }
  }

  private func reference(_ byte: UInt8) throws -> [UInt8] {
    try PersistentReference.uuid(.genericPassword, [UInt8](repeating: byte, count: 16)).serialized()
  }

  private func encrypted(_ index: Int, _ reference: [UInt8]?, _ reason: Reason = .deviceBound) -> KeychainEntry {
    KeychainEntry(
      index: index, undecryptable: ItemDescriptor(undecryptable: .genericPassword),
      protection: .whenUnlockedThisDeviceOnly,
      persistentReference: reference, reason: reason)
  }

  @Test("Two keychains with the same items are equal, in any order and with any row numbers")
  func same() throws {
    let oldKeychain = decrypted(.password("anna"), .password("berta"))
    let newKeychain = decrypted(
      .password("berta", with: [.uuid: .string("0A"), .persistentReference: .data([1, 2]), .digest: .data([3])]),
      .password("anna", with: [.multiUser: .data([])]))
    let difference = try KeychainDifference(from: oldKeychain, to: newKeychain)
    #expect(difference.isEmpty && difference.sameCount == 2 && difference.undecrypted.total == 0)
  }

  @Test("Items that only one keychain contains are differences")
  func addedAndRemoved() throws {
    let difference = try KeychainDifference(
      from: decrypted(.password("hotel"), .password("anna")), to: decrypted(.password("anna"), .password("home")))
    #expect(difference.added.map(\.identity.account) == ["home"] && difference.added.map(\.index) == [1])
    #expect(difference.removed.map(\.identity.account) == ["hotel"] && difference.removed.map(\.index) == [0])
    #expect(difference.sameCount == 1 && !difference.isEmpty)
  }

  @Test("Items that differ in a part of the primary key are different items")
  func primaryKey() throws {
    var internet = KeychainItem.password("anna")
    internet.kind = .internetPassword
    let otherItems: [KeychainItem] = [
      .password("anna", service: "mail.example"), .password("anna", with: [.accessGroup: .string("other")]),
      .password("anna", with: [.synchronizable: .integer(1)]), internet,
    ]
    for otherItem in otherItems {
      let difference = try KeychainDifference(from: decrypted(.password("anna")), to: decrypted(otherItem))
      #expect(difference.added.count == 1 && difference.removed.count == 1 && difference.changed.isEmpty)
    }
  }

  @Test("Items are paired if a restore reads the same primary key, whatever the encoding of their attributes")
  func encodings() throws {
    var item = KeychainItem.password("anna")
    item.kind = .internetPassword
    item[.port] = .integer(443)
    var encodedDifferently = item
    encodedDifferently[.account] = .data(Array("anna".utf8))
    encodedDifferently[.port] = .string("443")
    for code in [AttributeCode.path, .securityDomain, .syncViewHint, .tokenID, .sharingGroup] {
      encodedDifferently[code] = .string("")
    }
    encodedDifferently[.authenticationType] = .data([])
    let difference = try KeychainDifference(from: decrypted(item), to: decrypted(encodedDifferently))
    #expect(difference.isEmpty && difference.sameCount == 1)

    var otherItem = encodedDifferently
    otherItem[.path] = .string("/mail")
    let otherDifference = try KeychainDifference(from: decrypted(item), to: decrypted(otherItem))
    #expect(otherDifference.added.count == 1 && otherDifference.removed.count == 1)
  }

  @Test("A changed item has its changed attributes, including the secret")
  func changed() throws {
    let oldItem = KeychainItem.password("anna")
    let newItem = KeychainItem.password(
      "anna", .afterFirstUnlock, secret: "another planted secret", changed: 2000,
      with: [.label: .string("Chat"), .comment: .string("new"), AttributeCode(rawValue: "zzzz"): .integer(7)])
    let difference = try KeychainDifference(from: decrypted(oldItem), to: decrypted(newItem, from: 5))
    let change = try #require(difference.changed.first)
    #expect(change.attributes == [.modificationDate, .comment, .label, .protection, AttributeCode(rawValue: "zzzz")])
    #expect(change.isSecretChanged && !change.isOnlyModificationDate)
    #expect(change.positionBefore == 0 && change.positionAfter == 5)
    #expect(change.modifiedBefore?.secondsSinceReferenceDate == 1000)
    #expect(change.modifiedAfter?.secondsSinceReferenceDate == 2000)
  }

  @Test("A changed secret is distinguished from a changed date")
  func secretOrDate() throws {
    let oldKeychain = decrypted(.password("anna", secret: "one"))
    let withNewSecret = decrypted(.password("anna", secret: "two"))
    let withNewDate = decrypted(.password("anna", secret: "one", changed: 2000))
    let secretChange = try #require(try KeychainDifference(from: oldKeychain, to: withNewSecret).changed.first)
    #expect(secretChange.attributes == [] && secretChange.isSecretChanged)
    let dateChange = try #require(try KeychainDifference(from: oldKeychain, to: withNewDate).changed.first)
    #expect(dateChange.isOnlyModificationDate)
  }

  @Test("An added note of a password is a changed secret")
  func addedNote() throws {
    var item = KeychainItem.password("anna", secret: "one")
    item.kind = .internetPassword
    var itemWithNote = item
    itemWithNote.secrets[.extraNotes] = SensitiveBytes(copying: Array("planted note".utf8))
    let difference = try KeychainDifference(from: decrypted(item), to: decrypted(itemWithNote))
    #expect(difference.changed.first?.isSecretChanged == true)
  }

  @Test("A missing attribute equals its default, and access controls are ignored")
  func defaults() throws {
    var oldItem = KeychainItem.password("anna", with: [.accessControl: .dictionary(["prot": .string("ak")])])
    oldItem[.synchronizable] = nil
    let newItem = KeychainItem.password("anna", with: [.tombstone: .integer(0)])
    let difference = try KeychainDifference(from: decrypted(oldItem), to: decrypted(newItem))
    #expect(difference.isEmpty && difference.sameCount == 1)
  }

  @Test("Two items with the same primary key are paired in their order")
  func duplicates() throws {
    let difference = try KeychainDifference(
      from: decrypted(.password("anna", secret: "one"), .password("anna", secret: "two")),
      to: decrypted(.password("anna", secret: "one")))
    #expect(difference.sameCount == 1 && difference.removed.map(\.index) == [1] && difference.added.isEmpty)
  }

  @Test("Encrypted items of both keychains are counted by their references, without their contents")
  func encryptedInBoth() throws {
    let difference = try KeychainDifference(
      from: [encrypted(0, reference(1))] + decrypted(.password("anna"), from: 1),
      to: decrypted(.password("anna")) + [encrypted(1, reference(1))])
    #expect(difference.undecrypted == .init(inBoth: 1) && difference.isEmpty && difference.sameCount == 1)
  }

  @Test("An item that is encrypted in the other keychain under the same reference is not new")
  func encryptedInFirst() throws {
    let decryptedEntry = KeychainEntry(index: 0, item: .password("token"), persistentReference: try reference(1))
    let difference = try KeychainDifference(from: [encrypted(0, reference(1))], to: [decryptedEntry])
    #expect(difference.added.isEmpty && difference.undecrypted == .init(inBoth: 1, decryptedOnlyInSecond: 1))
    #expect(difference.isEmpty && !difference.isComplete)
  }

  @Test("Encrypted items are not paired by row numbers, which are not unique")
  func rowNumbers() throws {
    let reference = try PersistentReference.rowID(.genericPassword, 7).serialized()
    let decryptedEntry = KeychainEntry(index: 0, item: .password("token"), persistentReference: reference)
    let difference = try KeychainDifference(from: [encrypted(0, reference)], to: [decryptedEntry])
    #expect(difference.added.count == 1 && difference.undecrypted == .init(onlyInFirst: 1))
  }

  @Test("Encrypted items are not paired by an ambiguous reference")
  func ambiguousReferences() throws {
    let difference = try KeychainDifference(
      from: [encrypted(0, reference(1)), encrypted(1, reference(1))], to: [encrypted(0, reference(1))])
    #expect(difference.undecrypted == .init(onlyInFirst: 2, onlyInSecond: 1, possiblePairs: 1))
  }

  private static let deviceBoundItem = KeychainItem.password("token", .whenUnlockedThisDeviceOnly)

  @Test("An item that may be encrypted in the first keychain is not added")
  func possiblyInFirst() throws {
    let difference = try KeychainDifference(
      from: [encrypted(0, reference(1))], to: decrypted(Self.deviceBoundItem, .password("anna"), from: 4))
    #expect(difference.added.map(\.index) == [5] && difference.possiblyInFirst.map(\.index) == [4])
    #expect(difference.undecrypted == .init(onlyInFirst: 1))
  }

  @Test("An item that may be encrypted in the second keychain is not removed")
  func possiblyInSecond() throws {
    let difference = try KeychainDifference(
      from: decrypted(Self.deviceBoundItem), to: [encrypted(0, nil, .tagMismatch)])
    #expect(difference.removed.isEmpty && difference.isEmpty)
    #expect(difference.possiblyInSecond.map(\.identity.account) == ["token"])
  }

  @Test("An encrypted item of another kind cannot be the added item")
  func encryptedItemOfOtherKind() throws {
    var key = Self.deviceBoundItem
    key.kind = .key
    let difference = try KeychainDifference(from: [encrypted(0, nil)], to: decrypted(key))
    #expect(difference.added.count == 1)
  }

  @Test(
    "If the keychains have references in common, an item whose reference is in only one of them is a different item")
  func commonReferences() throws {
    let oldEntries = [encrypted(0, try reference(1)), encrypted(1, try reference(2))]
    let newEntries = [
      KeychainEntry(index: 0, item: Self.deviceBoundItem, persistentReference: try reference(1)),
      KeychainEntry(
        index: 1, item: .password("another", .whenUnlockedThisDeviceOnly), persistentReference: try reference(3)),
    ]
    let difference = try KeychainDifference(from: oldEntries, to: newEntries)
    #expect(difference.added.map(\.index) == [1] && difference.possiblyInFirst.isEmpty)
    #expect(difference.undecrypted == .init(inBoth: 1, decryptedOnlyInSecond: 1, onlyInFirst: 1))
  }

  @Test("If two decrypted items could match one encrypted item, the keychains differ")
  func morePossibleItemsThanEncrypted() throws {
    let first = KeychainItem.password("one", .whenUnlockedThisDeviceOnly)
    let second = KeychainItem.password("two", .whenUnlockedThisDeviceOnly)
    let withOne = try KeychainDifference(from: [encrypted(0, nil)], to: decrypted(first))
    let withTwo = try KeychainDifference(from: [encrypted(0, nil)], to: decrypted(first, second))
    #expect(withOne.isEmpty)
    #expect(!withTwo.isEmpty && withTwo.added.isEmpty && withTwo.possiblyInFirst.count == 2)
  }

  private func internetPassword(port: Int64?, group: String) -> KeychainItem {
    var item = KeychainItem.password("anna", with: [.server: .string("mail.example")])
    item.kind = .internetPassword
    if let port { item[.port] = .integer(port) }
    item[.accessGroup] = .string(group)
    return item
  }

  @Test("Added and removed internet passwords with the same names are distinguished by port and access group")
  func disambiguatorsOfInternetPasswords() throws {
    let difference = try KeychainDifference(
      from: decrypted(internetPassword(port: nil, group: "app"), internetPassword(port: 80, group: "b")),
      to: decrypted(internetPassword(port: 8443, group: "app")))
    #expect(difference.added.map(\.disambiguators) == [["port 8443", "access group app"]])
    #expect(
      difference.removed.map(\.disambiguators) == [["no port", "access group app"], ["port 80", "access group b"]])
  }

  @Test("A synced and an unsynced item with the same names are distinguished")
  func disambiguatorsOfSyncedItem() throws {
    let difference = try KeychainDifference(
      from: decrypted(.password("anna")), to: decrypted(.password("anna", with: [.synchronizable: .integer(1)])))
    #expect(difference.added.map(\.disambiguators) == [["synced"]])
    #expect(difference.removed.map(\.disambiguators) == [["not synced"]])
  }

  @Test("Names that differ only in their Unicode normalization are distinguished by their bytes")
  func disambiguatorsOfUnicodeNames() throws {
    let (composed, decomposed) = ("Z\u{FC}", "Zu\u{308}")
    let difference = try KeychainDifference(
      from: decrypted(.password("anna", service: composed)), to: decrypted(.password("anna", service: decomposed)))
    #expect(difference.added.map(\.disambiguators) == [["service 0x5a75cc88"]])
    #expect(difference.removed.map(\.disambiguators) == [["service 0x5ac3bc"]])
  }

  @Test("Items with different names have no disambiguators")
  func noDisambiguators() throws {
    let difference = try KeychainDifference(from: decrypted(.password("anna")), to: decrypted(.password("berta")))
    #expect(difference.added.map(\.disambiguators) == [[]])
  }

  @Test("Damaged items are distinguished from device-bound ones")
  func damaged() throws {
    let difference = try KeychainDifference(
      from: [encrypted(0, nil, .tagMismatch), encrypted(1, nil)], to: [encrypted(0, nil, .malformed)])
    #expect(difference.undecrypted == .init(onlyInFirst: 2, onlyInSecond: 1, possiblePairs: 1, damaged: 2))
  }

  @Test("Two copies of a backup are equal, with device-bound items compared by their bytes")
  func archives() throws {
    let backup = try EditableBackup(items: [.password("anna"), .password("token", .whenUnlockedThisDeviceOnly)])
    let archive = try backup.open()
    let opened = try archive.open(with: archive.unlock(password: Secret(utf8: EditableBackup.password)))
    let difference = try KeychainDifference(from: opened.entries, to: opened.entries)
    #expect(difference.sameCount == 2 && difference.undecrypted == .init(identicalCount: 1) && difference.isComplete)
    #expect(opened.entries.map(\.reason) == [nil, .deviceBound])
  }

  @Test("A comparison contains no secret, and not the length of a secret")
  func secrecy() throws {
    let difference = try KeychainDifference(
      from: decrypted(.password("anna"), .password("gone", secret: "planted and gone")),
      to: decrypted(.password("anna", secret: "planted again"), .password("new", secret: "planted and new")))
    var text = "\(difference)"
    dump(difference, to: &text)
    #expect(text.contains("gone") && !text.contains("planted") && !text.contains("sensitive bytes"))
  }
}
