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

  /// Decrypts a backup, with or without the device key.
  ///
  /// - Parameter previous: The result of a previous decryption, whose keychain file is used again.
  private func decrypt(
    _ archive: BackupArchive, _ backup: EditableBackup, withDeviceKey: Bool, reusing previous: UnlockedBackup? = nil
  ) throws -> UnlockedBackup {
    let password: Secret? = backup.hasPassword ? Secret(utf8: EditableBackup.password) : nil
    let key = try archive.unlock(password: password)
    let deviceKey = withDeviceKey ? try backup.hardware.deviceKey() : nil
    guard let previous else { return try archive.open(with: key, deviceKey: deviceKey, for: .reading) }
    return try previous.archive.open(with: key, deviceKey: deviceKey, for: .reading, reusing: previous)
  }

  private func outcomes(_ unlocked: UnlockedBackup) throws -> [Outcome] { try unlocked.items.map { try Outcome($0) } }

  @Test("A large keychain has the same items from a temporary file and from memory", arguments: [true, false])
  func bothStorages(hasPassword: Bool) throws {
    let backup = try EditableBackup(hasPassword: hasPassword, items: Self.items)
    let inFile = try outcomes(in: .temporaryFile, of: backup)
    let inMemory = try outcomes(in: .memory, of: backup)
    #expect(inFile.withoutDeviceKey == inMemory.withoutDeviceKey && inFile.withDeviceKey == inMemory.withDeviceKey)
    let secrets = try Self.items.map { try $0.secret?.withBytes { try Digest.sha256($0) } }
    #expect(inFile.withDeviceKey.map(\.secret) == secrets)
  }

  /// Decrypts a backup of all items without and with the device key, and checks the numbers of decrypted items.
  private func outcomes(
    in storage: ManifestStorage, of backup: EditableBackup
  ) throws -> (withoutDeviceKey: [Outcome], withDeviceKey: [Outcome]) {
    let archive = try BackupArchive.open(.path(backup.path), storage: storage)
    #expect((archive.storedLargeKeychain != nil) == (storage == .temporaryFile))
    let withoutDeviceKey = try decrypt(archive, backup, withDeviceKey: false)
    let withDeviceKey = try decrypt(archive, backup, withDeviceKey: true)
    #expect(withoutDeviceKey.items.count { $0.item != nil } == (backup.hasPassword ? 6 : 0))
    #expect(withDeviceKey.items.count { $0.item != nil } == 12)
    let reused = try decrypt(archive, backup, withDeviceKey: true, reusing: withoutDeviceKey)
    #expect(try outcomes(reused) == outcomes(withDeviceKey))
    return (try outcomes(withoutDeviceKey), try outcomes(withDeviceKey))
  }

  @Test("A large keychain has all items if ten megabytes of unknown content are between them")
  func unknownContentBetweenItems() throws {
    let genericPassword = KeychainItem.password("berta")
    let internetPassword = KeychainItem(
      kind: .internetPassword, attributes: genericPassword.attributes, secrets: genericPassword.secrets)
    let backup = try EditableBackup(
      items: [.password("anna"), internetPassword],
      editKeychain: { bytes in
        let root = try #require(try BinaryPlist.decode(bytes).dictionaryValue)
        var newRoot = PropertyDictionary()
        for entry in root.entries {
          if entry.key == .string("inet") { newRoot["other"] = .data([UInt8](repeating: 7, count: 10 << 20)) }
          newRoot.entries.append(entry)
        }
        return try BinaryPlist.encode(.dictionary(newRoot))
      })
    let archive = try BackupArchive.open(.path(backup.path))
    #expect(archive.storedLargeKeychain != nil)
    let unlocked = try decrypt(archive, backup, withDeviceKey: false)
    #expect(unlocked.items.map { $0.item?[.account] } == [.string("anna"), .string("berta")])
    let archiveInMemory = try BackupArchive.open(.path(backup.path), storage: .memory)
    let unlockedInMemory = try decrypt(archiveInMemory, backup, withDeviceKey: false)
    #expect(try outcomes(unlocked) == outcomes(unlockedInMemory))
  }

  @Test("If the keychain file itself needs the device key, another device key makes Keyhaul read it again")
  func keychainNeedsDeviceKey() throws {
    let backup = try EditableBackup(
      items: [.password("anna", .whenUnlocked)], keychainKeyClass: .whenUnlockedThisDeviceOnly)
    let archive = try BackupArchive.open(.path(backup.path))
    let withSourceKey = try decrypt(archive, backup, withDeviceKey: true)
    #expect(withSourceKey.keychainReadFailure == nil && withSourceKey.items.count == 1)

    let key = try archive.unlock(password: Secret(utf8: EditableBackup.password))
    let otherDevice = try HardwareUID(from: SeededRandomSource(seed: "another phone"))
    let withOtherKey = try withSourceKey.archive.open(
      with: key, deviceKey: try otherDevice.deviceKey(), for: .reading, reusing: withSourceKey)
    #expect(withOtherKey.keychainReadFailure?.kind == .keychainDamaged && withOtherKey.items.isEmpty)

    let withSourceKeyAgain = try decrypt(archive, backup, withDeviceKey: true, reusing: withSourceKey)
    #expect(withSourceKeyAgain.items.count == 1)
  }

  /// An anomaly of a large keychain file.
  enum Anomaly: String, CaseIterable {
    case none, plaintextDigest, wrongDigest, unknownKey, xml, extraByte, withoutPadding, truncatedPlist, otherKeybag
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
    case .xml: return try EditableBackup(items: Self.items, keychainInXML: true)
    case .truncatedPlist: return try EditableBackup(items: Self.items, editKeychain: { Array($0.dropLast(5)) })
    case .otherKeybag:
      return try EditableBackup(items: Self.items, namingKeybag: "3e13c52c-7f6c-7dfe-4789-6ec6af9328d0")
    case .extraByte, .withoutPadding:
      let backup = try EditableBackup(items: Self.items)
      var stored = try backup.read(Self.storedPath)
      if anomaly == .extraByte { stored.append(0) } else { stored.removeLast(32) }
      try backup.write(stored, to: Self.storedPath)
      return backup
    }
  }

  private static let storedPath = "\(KeychainPayload.fileIdentifier.prefix(2))/\(KeychainPayload.fileIdentifier)"

  @Test("A large keychain file with an anomaly has the same findings as one in memory", arguments: Anomaly.allCases)
  func sameFindings(_ anomaly: Anomaly) throws {
    let backup = try backup(anomaly)
    let inFile = try read(backup, in: .temporaryFile)
    let inMemory = try read(backup, in: .memory)
    #expect(inFile == inMemory)
    let verification = inFile.verification
    switch anomaly {
    case .none, .plaintextDigest, .unknownKey, .xml:
      #expect(verification.faults == [] && inFile.items.count == 12)
    case .wrongDigest: #expect(verification.faults != [] && inFile.items.count == 12)
    case .otherKeybag: #expect(verification.isKeychainRefused)
    case .extraByte, .withoutPadding, .truncatedPlist: #expect(verification.isKeychainLost && inFile.items == [])
    }
  }

  /// The results of verifying and decrypting a backup.
  private struct ReadingResult: Equatable {
    let verification: BackupVerification
    let items: [Outcome]
    let anomalies: [ToleratedAnomaly]
  }

  private func read(_ backup: EditableBackup, in storage: ManifestStorage) throws -> ReadingResult {
    let archive = try BackupArchive.open(.path(backup.path), storage: storage)
    #expect((archive.storedLargeKeychain != nil) == (storage == .temporaryFile))
    let key = try archive.unlock(password: Secret(utf8: EditableBackup.password))
    let verification = try BackupVerification(archive, keys: try key.classKeys(deviceKey: nil))
    let unlocked = try archive.open(with: key, for: .reading)
    return ReadingResult(verification: verification, items: try outcomes(unlocked), anomalies: unlocked.anomalies)
  }

  @Test(
    "A failure to read the temporary file is an error, and no item is reported as lost",
    arguments: Operation.allCases)
  func unreadable(_ operation: Operation) throws {
    let backup = try EditableBackup(items: Self.items)
    let readCount = Locked(0)
    let readLimit = Locked(Int.max)
    let system = FileSystem { call in
      guard call == .read else { return nil }
      return readCount.withLock { count in
        count += 1
        return count > readLimit.withLock { $0 } ? .failure(.ioError) : nil
      }
    }
    /// Performs the operation. Reads fail after `limit` reads of the open backup. Returns the number of these reads.
    func performOperation(failingAfter limit: Int) throws -> Int {
      let archive = try BackupArchive.open(.path(backup.path), limits: .standard, system: system)
      readCount.withLock { $0 = 0 }
      readLimit.withLock { $0 = limit }
      defer { readLimit.withLock { $0 = .max } }
      try perform(operation, archive, backup)
      return readCount.withLock { $0 }
    }
    let totalCount = try performOperation(failingAfter: .max)
    #expect(totalCount > 40)
    // The first two reads fail, one in the middle, and the last three, with which the operation ends.
    for limit in [0, 1, totalCount / 2, totalCount - 3, totalCount - 2, totalCount - 1] {
      let error = #expect(throws: KeyhaulError.self) { try performOperation(failingAfter: limit) }
      #expect(error?.reason.contains("a temporary file: input/output error") == true, "\(limit) of \(totalCount)")
    }
  }

  /// An operation on a backup.
  enum Operation: String, CaseIterable {
    case opening, iterating, verifying
  }

  private func perform(_ operation: Operation, _ archive: BackupArchive, _ backup: EditableBackup) throws {
    switch operation {
    case .opening:
      let unlocked = try decrypt(archive, backup, withDeviceKey: false)
      _ = try decrypt(archive, backup, withDeviceKey: true, reusing: unlocked)
    case .iterating:
      let key = try archive.unlock(password: Secret(utf8: EditableBackup.password))
      let reader = try archive.reader(with: key, for: .exporting)
      var decryptedCount = 0
      let countDecryptedItems = { (chunk: [BackupItem]) throws(KeyhaulError) in
        decryptedCount += chunk.count { $0.item != nil }
      }
      try reader.forEachChunk(translating: { $0 }, countDecryptedItems)
      #expect(decryptedCount == 6)
    case .verifying:
      let key = try archive.unlock(password: backup.hasPassword ? Secret(utf8: EditableBackup.password) : nil)
      let verification = try BackupVerification(archive, keys: try key.classKeys(deviceKey: nil))
      #expect(verification.findings == [] && verification.items?.deviceBound == 6)
    }
  }
}
