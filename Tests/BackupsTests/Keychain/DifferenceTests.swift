import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules
import Testing

@testable import Backups

@Suite("Comparisons of keychains")
struct DifferenceTests {
  private func decrypted(_ items: KeychainItem..., from first: Int = 0) -> [KeychainEntry] {
    items.enumerated().map { KeychainEntry(index: first + $0, item: $1) }
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
    let first = decrypted(.password("anna"), .password("berta"))
    let second = decrypted(
      .password("berta", with: [.uuid: .string("0A"), .persistentReference: .data([1, 2]), .digest: .data([3])]),
      .password("anna", with: [.multiUser: .data([])]))
    let difference = try KeychainDifference(from: first, to: second)
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
    let others: [KeychainItem] = [
      .password("anna", service: "mail.example"), .password("anna", with: [.accessGroup: .string("other")]),
      .password("anna", with: [.synchronizable: .integer(1)]), internet,
    ]
    for other in others {
      let difference = try KeychainDifference(from: decrypted(.password("anna")), to: decrypted(other))
      #expect(difference.added.count == 1 && difference.removed.count == 1 && difference.changed.isEmpty)
    }
  }

  @Test("Items are paired if a restore reads the same primary key, whatever the encoding of their attributes")
  func spellings() throws {
    var plain = KeychainItem.password("anna")
    plain.kind = .internetPassword
    plain[.port] = .integer(443)
    var spelled = plain
    spelled[.account] = .data(Array("anna".utf8))
    spelled[.port] = .string("443")
    for code in [AttributeCode.path, .securityDomain, .syncViewHint, .tokenID, .sharingGroup] {
      spelled[code] = .string("")
    }
    spelled[.authenticationType] = .data([])
    let difference = try KeychainDifference(from: decrypted(plain), to: decrypted(spelled))
    #expect(difference.isEmpty && difference.sameCount == 1)

    spelled[.path] = .string("/mail")
    let other = try KeychainDifference(from: decrypted(plain), to: decrypted(spelled))
    #expect(other.added.count == 1 && other.removed.count == 1)
  }

  @Test("A changed item has its changed attributes, including the secret")
  func changed() throws {
    let old = KeychainItem.password("anna")
    let new = KeychainItem.password(
      "anna", .afterFirstUnlock, secret: "another planted secret", changed: 2000,
      with: [.label: .string("Chat"), .comment: .string("new"), AttributeCode(rawValue: "zzzz"): .integer(7)])
    let difference = try KeychainDifference(from: decrypted(old), to: decrypted(new, from: 5))
    let change = try #require(difference.changed.first)
    #expect(change.attributes == [.modificationDate, .comment, .label, .protection, AttributeCode(rawValue: "zzzz")])
    #expect(change.isSecretChanged && !change.isOnlyModificationDate)
    #expect(change.indexBefore == 0 && change.indexAfter == 5)
    #expect(change.modifiedBefore?.secondsSinceReferenceDate == 1000)
    #expect(change.modifiedAfter?.secondsSinceReferenceDate == 2000)
  }

  @Test("A changed secret is distinguished from a changed date")
  func secretOnly() throws {
    let secret = try KeychainDifference(
      from: decrypted(.password("anna", secret: "one")), to: decrypted(.password("anna", secret: "two")))
    #expect(secret.changed.first?.attributes == [] && secret.changed.first?.isSecretChanged == true)
    let touched = try KeychainDifference(
      from: decrypted(.password("anna", secret: "one")), to: decrypted(.password("anna", secret: "one", changed: 2000)))
    #expect(touched.changed.first?.isOnlyModificationDate == true)
    var notes = KeychainItem.password("anna", secret: "one")
    notes.kind = .internetPassword
    let bare = notes
    notes.secrets[.extraNotes] = SensitiveBytes(copying: Array("planted note".utf8))
    #expect(try KeychainDifference(from: decrypted(bare), to: decrypted(notes)).changed.first?.isSecretChanged == true)
  }

  @Test("A missing attribute equals its default, and access controls are ignored")
  func defaults() throws {
    var old = KeychainItem.password("anna", with: [.accessControl: .dictionary(["prot": .string("ak")])])
    old[.synchronizable] = nil
    let new = KeychainItem.password("anna", with: [.tombstone: .integer(0)])
    let difference = try KeychainDifference(from: decrypted(old), to: decrypted(new))
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
  func sealedInBoth() throws {
    let difference = try KeychainDifference(
      from: [encrypted(0, reference(1))] + decrypted(.password("anna"), from: 1),
      to: decrypted(.password("anna")) + [encrypted(1, reference(1))])
    #expect(difference.undecrypted == .init(inBoth: 1) && difference.isEmpty && difference.sameCount == 1)
  }

  @Test("An item that is encrypted in the other keychain under the same reference is not new")
  func sealedAndOpen() throws {
    let onDevice = KeychainEntry(index: 0, item: .password("token"), persistentReference: try reference(1))
    let difference = try KeychainDifference(from: [encrypted(0, reference(1))], to: [onDevice])
    #expect(difference.added.isEmpty && difference.undecrypted == .init(inBoth: 1, decryptedOnlyInSecond: 1))
    #expect(difference.isEmpty && !difference.isComplete)
  }

  @Test("Encrypted items are not paired by row numbers, which are not unique")
  func rowNumbers() throws {
    let number = try PersistentReference.rowID(.genericPassword, 7).serialized()
    let other = KeychainEntry(index: 0, item: .password("token"), persistentReference: number)
    let difference = try KeychainDifference(from: [encrypted(0, number)], to: [other])
    #expect(difference.added.count == 1 && difference.undecrypted == .init(onlyInFirst: 1))
  }

  @Test("Encrypted items are not paired by an ambiguous reference")
  func ambiguousReferences() throws {
    let difference = try KeychainDifference(
      from: [encrypted(0, reference(1)), encrypted(1, reference(1))], to: [encrypted(0, reference(1))])
    #expect(difference.undecrypted == .init(onlyInFirst: 2, onlyInSecond: 1, possiblePairs: 1))
  }

  @Test("An item that may be encrypted in the other keychain is neither added nor removed")
  func doubtful() throws {
    let bound = KeychainItem.password("token", .whenUnlockedThisDeviceOnly)
    let forward = try KeychainDifference(
      from: [encrypted(0, reference(1))], to: decrypted(bound, .password("anna"), from: 4))
    #expect(forward.added.map(\.index) == [5] && forward.possiblyInFirst.map(\.index) == [4])
    #expect(forward.undecrypted == .init(onlyInFirst: 1))
    let backward = try KeychainDifference(from: decrypted(bound), to: [encrypted(0, nil, .tagMismatch)])
    #expect(
      backward.removed.isEmpty && backward.possiblyInSecond.map(\.identity.account) == ["token"] && backward.isEmpty)
    var key = bound
    key.kind = .key
    #expect(try KeychainDifference(from: [encrypted(0, nil)], to: decrypted(key)).added.count == 1)
  }

  @Test("With shared references, an item with its own reference is a different item")
  func sharedReferences() throws {
    let bound = KeychainItem.password("token", .whenUnlockedThisDeviceOnly)
    let before = [encrypted(0, try reference(1)), encrypted(1, try reference(2))]
    let after = [
      KeychainEntry(index: 0, item: bound, persistentReference: try reference(1)),
      KeychainEntry(
        index: 1, item: .password("another", .whenUnlockedThisDeviceOnly), persistentReference: try reference(3)),
    ]
    let difference = try KeychainDifference(from: before, to: after)
    #expect(difference.added.map(\.index) == [1] && difference.possiblyInFirst.isEmpty)
    #expect(difference.undecrypted == .init(inBoth: 1, decryptedOnlyInSecond: 1, onlyInFirst: 1))
  }

  @Test("More undecided items than encrypted counterparts are a difference")
  func moreDoubtfulThanSealed() throws {
    let bound = ["one", "two"].map { KeychainItem.password($0, .whenUnlockedThisDeviceOnly) }
    let one = try KeychainDifference(from: [encrypted(0, nil)], to: decrypted(bound[0]))
    let two = try KeychainDifference(from: [encrypted(0, nil)], to: decrypted(bound[0], bound[1]))
    #expect(one.isEmpty && !two.isEmpty && two.added.isEmpty && two.possiblyInFirst.count == 2)
  }

  @Test("Added and removed items with the same names have disambiguators")
  func disambiguators() throws {
    func page(_ port: Int64?, group: String = "app") -> KeychainItem {
      var item = KeychainItem.password("anna", with: [.server: .string("mail.example")])
      item.kind = .internetPassword
      if let port { item[.port] = .integer(port) }
      item[.accessGroup] = .string(group)
      return item
    }
    let moved = try KeychainDifference(from: decrypted(page(nil), page(80, group: "b")), to: decrypted(page(8443)))
    #expect(moved.added.map(\.disambiguators) == [["port 8443", "access group app"]])
    #expect(moved.removed.map(\.disambiguators) == [["no port", "access group app"], ["port 80", "access group b"]])
    let synced = try KeychainDifference(
      from: decrypted(.password("anna")), to: decrypted(.password("anna", with: [.synchronizable: .integer(1)])))
    #expect(
      synced.added.map(\.disambiguators) == [["synced"]] && synced.removed.map(\.disambiguators) == [["not synced"]])
    // Two Unicode forms of a name: ü as one character, and as u with a diaeresis.
    let spelled = try KeychainDifference(
      from: decrypted(.password("anna", service: "Z\u{FC}")), to: decrypted(.password("anna", service: "Zu\u{308}")))
    #expect(spelled.added.map(\.disambiguators) == [["service 0x5a75cc88"]])
    #expect(spelled.removed.map(\.disambiguators) == [["service 0x5ac3bc"]])
    let others = try KeychainDifference(from: decrypted(.password("anna")), to: decrypted(.password("berta")))
    #expect(others.added.map(\.disambiguators) == [[]])
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

  @Test("A comparison contains no secret and no length of one")
  func secrecy() throws {
    let difference = try KeychainDifference(
      from: decrypted(.password("anna"), .password("gone", secret: "planted and gone")),
      to: decrypted(.password("anna", secret: "planted again"), .password("new", secret: "planted and new")))
    var text = "\(difference)"
    dump(difference, to: &text)
    #expect(text.contains("gone") && !text.contains("planted") && !text.contains("sensitive bytes"))
  }
}
