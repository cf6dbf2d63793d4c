import Basics
import KeychainCrypto
import KeychainFormats
import SystemPackage
import TestSupport
import Testing

@testable import Backups

@Suite("Keychain files that are too large for memory")
struct LargeKeychainTests {
  /// Items of twelve megabytes in total, half of them device-bound.
  private static let items = (0..<12).map { number in
    KeychainItem.password(
      "anna-\(number)", number.isMultiple(of: 2) ? .whenUnlocked : .whenUnlockedThisDeviceOnly,
      secret: "secret \(number) " + String(repeating: "x", count: 1_000_000 + number))
  }

  /// The result for each item: the digest of its secret, its reference, the location and digest of its data, and the
  /// reason of a failure.
  private struct Outcome: Equatable {
    let index: Int
    let secret: [UInt8]?
    let failure: BackupItem.Failure?
    let reference: [UInt8]?
    let location: BackupItem.BlobLocation?
    let fingerprint: ItemFingerprint?

    init(_ item: BackupItem) throws {
      index = item.index
      secret = try item.item?.secret?.withBytes { try Digest.sha256($0) }
      if case .failed(let failure) = item.opening { self.failure = failure } else { failure = nil }
      reference = item.persistentReference
      location = item.blob
      fingerprint = item.fingerprint
    }
  }

  /// Decrypts a backup, with or without the device key, and then again with it.
  private func decrypt(
    _ archive: BackupArchive, _ backup: EditableBackup, withDevice: Bool
  ) throws -> (first: UnlockedBackup, reusedWithDevice: UnlockedBackup) {
    let password: Secret? = backup.hasPassword ? Secret(utf8: EditableBackup.password) : nil
    let key = try archive.unlock(password: password)
    let first = try archive.open(
      with: key, deviceKey: withDevice ? try backup.hardware.deviceKey() : nil, for: .reading)
    return (
      first,
      try first.archive.open(with: key, deviceKey: try backup.hardware.deviceKey(), for: .reading, reusing: first)
    )
  }

  private func outcomes(_ opened: UnlockedBackup) throws -> [Outcome] { try opened.items.map { try Outcome($0) } }

  @Test("A large keychain has the same items from a temporary file and from memory", arguments: [true, false])
  func bothStorages(hasPassword: Bool) throws {
    let backup = try EditableBackup(hasPassword: hasPassword, items: Self.items)
    var results: [[Outcome]] = []
    for storage in [ManifestStorage.temporaryFile, .memory] {
      let archive = try BackupArchive.open(.path(backup.path), storage: storage)
      #expect((archive.storedLargeKeychain != nil) == (storage == .temporaryFile))
      let (withoutDevice, reused) = try decrypt(archive, backup, withDevice: false)
      let (withDevice, _) = try decrypt(archive, backup, withDevice: true)
      #expect(try outcomes(reused) == outcomes(withDevice))
      #expect(withDevice.items.count { $0.item != nil } == 12)
      #expect(withoutDevice.items.count { $0.item != nil } == (hasPassword ? 6 : 0))
      results += [try outcomes(withoutDevice), try outcomes(withDevice)]
    }
    #expect(results[0] == results[2] && results[1] == results[3])
    let secrets = try Self.items.map { try $0.secret?.withBytes { try Digest.sha256($0) } }
    #expect(results[1].map(\.secret) == secrets)
  }

  @Test("A large keychain with scattered items has all of them")
  func scattered() throws {
    // An unknown key with ten megabytes is between the two arrays of items.
    var address = KeychainItem.password("berta")
    address = KeychainItem(kind: .internetPassword, attributes: address.attributes, secrets: address.secrets)
    let backup = try EditableBackup(
      items: [.password("anna"), address],
      editKeychain: { bytes in
        let root = try #require(try BinaryPlist.decode(bytes).dictionaryValue)
        var wide = PropertyDictionary()
        for entry in root.entries {
          if entry.key == .string("inet") { wide["other"] = .data([UInt8](repeating: 7, count: 10 << 20)) }
          wide.entries.append(entry)
        }
        return try BinaryPlist.encode(.dictionary(wide))
      })
    let archive = try BackupArchive.open(.path(backup.path))
    #expect(archive.storedLargeKeychain != nil)
    let (opened, _) = try decrypt(archive, backup, withDevice: false)
    #expect(opened.items.map { $0.item?[.account] } == [.string("anna"), .string("berta")])
    let memory = try BackupArchive.open(.path(backup.path), storage: .memory)
    #expect(try outcomes(opened) == outcomes(try decrypt(memory, backup, withDevice: false).first))
  }

  @Test("A small keychain is read again with another device key")
  func sealedForHardware() throws {
    let backup = try EditableBackup(
      items: [.password("anna", .whenUnlocked)], keychainKeyClass: .whenUnlockedThisDeviceOnly)
    let archive = try BackupArchive.open(.path(backup.path))
    let key = try archive.unlock(password: Secret(utf8: EditableBackup.password))
    let withSourceKey = try archive.open(with: key, deviceKey: try backup.hardware.deviceKey(), for: .reading)
    #expect(withSourceKey.hiddenKeychain == nil && withSourceKey.items.count == 1)
    let other = try HardwareUID(from: SeededRandomSource(seed: "another phone"))
    let reused = try withSourceKey.archive.open(
      with: key, deviceKey: try other.deviceKey(), for: .reading, reusing: withSourceKey)
    #expect(reused.hiddenKeychain?.kind == .keychainDamaged && reused.items.isEmpty)
    #expect(
      try withSourceKey.archive.open(
        with: key, deviceKey: try backup.hardware.deviceKey(), for: .reading, reusing: withSourceKey
      ).items
        .count == 1)
  }

  /// An anomaly of a large keychain file.
  enum Anomaly: String, CaseIterable {
    case none, plaintextDigest, wrongDigest, unknownKey, inXML, longer, withoutPadding, cutPlist, otherKeybag
  }

  private func backup(_ anomaly: Anomaly) throws -> EditableBackup {
    switch anomaly {
    case .none: return try EditableBackup(items: Self.items)
    case .plaintextDigest: return try EditableBackup(items: Self.items, keychainDigest: .ofPlaintext)
    case .wrongDigest: return try EditableBackup(items: Self.items, keychainDigest: .wrong)
    case .unknownKey:
      return try EditableBackup(
        items: Self.items,
        editKeychain: { bytes in
          var root = try #require(try BinaryPlist.decode(bytes).dictionaryValue)
          root["other"] = .array([])
          return try BinaryPlist.encode(.dictionary(root))
        })
    case .inXML: return try EditableBackup(items: Self.items, keychainInXML: true)
    case .cutPlist: return try EditableBackup(items: Self.items, editKeychain: { Array($0.dropLast(5)) })
    case .otherKeybag:
      return try EditableBackup(items: Self.items, namingKeybag: "3e13c52c-7f6c-7dfe-4789-6ec6af9328d0")
    case .longer, .withoutPadding:
      let backup = try EditableBackup(items: Self.items)
      var stored = try backup.read(Self.storedPath)
      if anomaly == .longer { stored.append(0) } else { stored.removeLast(32) }
      try backup.write(stored, to: Self.storedPath)
      return backup
    }
  }

  private static let storedPath = "\(KeychainPayload.fileIdentifier.prefix(2))/\(KeychainPayload.fileIdentifier)"

  @Test("A large keychain file with an anomaly has the same findings as one in memory", arguments: Anomaly.allCases)
  func sameFindings(_ anomaly: Anomaly) throws {
    let backup = try backup(anomaly)
    var verifications: [BackupVerification] = []
    var results: [(items: [Outcome], anomalies: [BackupAnomaly])] = []
    for storage in [ManifestStorage.temporaryFile, .memory] {
      let archive = try BackupArchive.open(.path(backup.path), storage: storage)
      #expect((archive.storedLargeKeychain != nil) == (storage == .temporaryFile))
      let key = try archive.unlock(password: Secret(utf8: EditableBackup.password))
      verifications.append(try BackupVerification(archive, keys: try key.classKeys(deviceKey: nil)))
      let unlocked = try archive.open(with: key, for: .reading)
      results.append((try outcomes(unlocked), unlocked.anomalies))
    }
    #expect(verifications[0] == verifications[1], "\(verifications)")
    #expect(results[0].items == results[1].items && results[0].anomalies == results[1].anomalies)
    switch anomaly {
    case .none, .plaintextDigest, .unknownKey, .inXML:
      #expect(verifications[0].faults == [] && results[0].items.count == 12)
    case .wrongDigest: #expect(verifications[0].faults != [] && results[0].items.count == 12)
    case .otherKeybag: #expect(verifications[0].isKeychainRefused)
    case .longer, .withoutPadding, .cutPlist: #expect(verifications[0].isKeychainLost && results[0].items == [])
    }
  }

  @Test(
    "A failure to read the temporary file is an error, and no item is reported as lost",
    arguments: Operation.allCases)
  func unreadable(_ operation: Operation) throws {
    let backup = try EditableBackup(items: Self.items)
    let reads = Locked(0)
    let readLimit = Locked(Int.max)
    let system = FileSystem { call in
      guard call == .read else { return nil }
      return reads.withLock { reads in
        reads += 1
        return reads > readLimit.withLock { $0 } ? .failure(.ioError) : nil
      }
    }
    func count(failingAfter limit: Int) throws -> Int {
      let archive = try BackupArchive.open(.path(backup.path), limits: .standard, system: system)
      reads.withLock { $0 = 0 }
      readLimit.withLock { $0 = limit }
      defer { readLimit.withLock { $0 = .max } }
      try perform(operation, archive, backup)
      return reads.withLock { $0 }
    }
    let all = try count(failingAfter: .max)
    #expect(all > 40)
    for limit in [0, 1, all / 2, all - 3, all - 2, all - 1] {
      let error = #expect(throws: KeyhaulError.self) { try count(failingAfter: limit) }
      #expect(error?.reason.contains("a temporary file: input/output error") == true, "\(limit) of \(all)")
    }
  }

  /// An operation on a backup.
  enum Operation: String, CaseIterable {
    case opening, iterating, verifying
  }

  private func perform(_ operation: Operation, _ archive: BackupArchive, _ backup: EditableBackup) throws {
    switch operation {
    case .opening: _ = try decrypt(archive, backup, withDevice: false)
    case .iterating:
      let key = try archive.unlock(password: Secret(utf8: EditableBackup.password))
      let reader = try archive.reader(with: key, for: .exporting)
      var readable = 0
      let count = { (portion: [BackupItem]) throws(KeyhaulError) in
        readable += portion.count { $0.item != nil }
      }
      try reader.forEachPortion(translating: { $0 }, count)
      #expect(readable == 6)
    case .verifying:
      let key = try archive.unlock(password: backup.hasPassword ? Secret(utf8: EditableBackup.password) : nil)
      let verification = try BackupVerification(archive, keys: try key.classKeys(deviceKey: nil))
      #expect(verification.findings == [] && verification.items?.deviceBound == 6)
    }
  }
}
