import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@testable import Backups

@Suite("Verification of backups")
struct VerificationTests {
  static let text = Array("a letter to Anna that is longer than two blocks of the cipher".utf8)

  static func files() -> [EditableBackup.File] {
    var fileWithoutDigest = EditableBackup.File("undigested.txt", text)
    fileWithoutDigest.digest = .none
    var emptyFile = EditableBackup.File("empty.txt", [])
    emptyFile.isStored = false
    return [EditableBackup.File("letter.txt", text), fileWithoutDigest, emptyFile]
  }

  static let items: [KeychainItem] = [
    .password("anna"), .password("berta", .afterFirstUnlock), .password("push token", .whenUnlockedThisDeviceOnly),
  ]

  func backup(
    hasPassword: Bool = true, layout: BackupLayout = .manifestDB, files: [EditableBackup.File] = Self.files()
  ) throws -> EditableBackup {
    try EditableBackup(hasPassword: hasPassword, layout: layout, files: files, items: Self.items)
  }

  /// The owner of the device key.
  enum Hardware { case none, own, other }

  func verify(
    _ backup: EditableBackup, knowsPassword: Bool = true, hardware: Hardware = .none
  ) throws -> BackupVerification {
    let archive = try backup.open()
    guard knowsPassword else { return try BackupVerification(archive, keys: nil) }
    let password: Secret? = backup.hasPassword ? Secret(utf8: EditableBackup.password) : nil
    let deviceKey: DeviceKey? =
      switch hardware {
      case .none: nil
      case .own: try backup.hardware.deviceKey()
      case .other: try HardwareUID(from: SeededRandomSource(seed: "another phone")).deviceKey()
      }
    let keys: ClassKeys? = try archive.unlock(password: password).classKeys(deviceKey: deviceKey)
    return try BackupVerification(archive, keys: keys)
  }

  // MARK: Without faults

  @Test(
    "A backup without faults passes all checks, and files without a digest are reported",
    arguments: BackupLayout.allCases)
  func whole(layout: BackupLayout) throws {
    let verification = try verify(backup(layout: layout))
    #expect(verification.faults == [] && verification.faultCount.isEmpty)
    // A change in the file without a digest cannot be detected.
    #expect(verification.verdict == .unproven && !verification.isWhole && verification.isFaultless)
    #expect(!verification.isOnlyIncomplete)
    #expect(verification.checks.map(\.id) == [.structure, .files, .keybag, .database, .keychain, .items])
    #expect(verification.checks.allSatisfy { $0.isOK })
    #expect(
      verification.unchecked
        == [.init(id: .seal, reason: "there is none, so changes in 1 file could not be detected")])
    #expect(verification.items == .init(readable: 2, deviceBound: 1, damaged: 0))
    #expect(
      verification.detail(of: .files)
        == "4 of 4 present, 1 of them empty and not stored, 2 digests match, 1 without a digest, 2 paddings valid "
        + "apart from the keychain's"
    )
    #expect(
      verification.files
        == .init(
          listed: 4, present: 4, emptyWithoutPayload: 1, withMatchingDigest: 2, withoutDigest: 1, withValidPadding: 2))
    #expect(verification.detail(of: .keybag) == "11 of 11 class keys can be unwrapped")
    #expect(verification.detail(of: .items) == "2 of 3 can be decrypted, 1 needs a device key")
  }

  @Test("With the source device's key, all items are checked")
  func ownDevice() throws {
    let backup = try backup()
    let verification = try verify(backup, hardware: .own)
    #expect(verification.items == .init(readable: 3, deviceBound: 0, damaged: 0))
    #expect(verification.verdict == .unproven)
  }

  @Test("With another device's key, device-bound items are not damaged")
  func otherDevice() throws {
    let verification = try verify(backup(), hardware: .other)
    #expect(verification.items == .init(readable: 2, deviceBound: 1, damaged: 0))
    #expect(verification.verdict == .unproven && verification.faults == [])
  }

  @Test("A backup without a password is foreign without its device's key, and whole with it")
  func withoutPassword() throws {
    let backup = try backup(hasPassword: false, files: [EditableBackup.File("letter.txt", Self.text)])
    let verificationWithoutDeviceKey = try verify(backup)
    #expect(verificationWithoutDeviceKey.verdict == .foreign && verificationWithoutDeviceKey.isWhole)
    #expect(verificationWithoutDeviceKey.items == .init(readable: 0, deviceBound: 3, damaged: 0))
    #expect(verificationWithoutDeviceKey.detail(of: .files) == "2 of 2 present, 2 digests match")
    #expect(try verify(backup, hardware: .own).verdict == .whole)
  }

  @Test("A backup without a password that has a file without a digest is not whole, even with its device's key")
  func withoutPasswordAndDigest() throws {
    let backup = try backup(hasPassword: false)
    let verificationWithoutDeviceKey = try verify(backup)
    #expect(verificationWithoutDeviceKey.verdict == .foreign && !verificationWithoutDeviceKey.isWhole)
    #expect(try verify(backup, hardware: .own).verdict == .unproven)
  }

  @Test("A backup without a keychain has no fault and no items")
  func noKeychain() throws {
    let verification = try verify(EditableBackup(files: Self.files(), hasKeychain: false))
    #expect(verification.verdict == .unproven && verification.items == nil)
    #expect(verification.detail(of: .keychain) == "none in this backup" && verification.detail(of: .items) == nil)
  }

  @Test("A different recorded size is reported, but is not a fault")
  func differentSize() throws {
    var file = EditableBackup.File("letter.txt", Self.text)
    file.size = 5
    let verification = try verify(backup(files: [file]))
    #expect(verification.verdict == .whole)
    #expect(
      verification.detail(of: .files)
        == "2 of 2 present, 2 digests match, 1 padding valid apart from the keychain's, 1 with a size that differs "
        + "from the record")
    #expect(verification.notes == ["HomeDomain/letter.txt has 61 bytes, but the manifest records 5"])
  }

  @Test("The digests can be those of the plaintext or of the stored bytes")
  func plainDigest() throws {
    var file = EditableBackup.File("letter.txt", Self.text)
    file.digest = .ofPlaintext
    #expect(try verify(backup(files: [file])).verdict == .whole)
  }

  @Test("An unlisted file is a note")
  func unlisted() throws {
    let backup = try backup()
    try backup.write(Self.text, to: "00/0000000000000000000000000000000000000000")
    let verification = try verify(backup)
    #expect(verification.verdict == .unproven && verification.files?.unlisted == 1)
    #expect(verification.notes == ["1 stored file is not in the manifest"])
  }

  // MARK: Single faults

  @Test("A changed byte in a file is detected by its digest", arguments: [true, false])
  func changedFile(hasPassword: Bool) throws {
    let backup = try backup(hasPassword: hasPassword)
    try backup.change("HomeDomain/letter.txt") { $0[20] ^= 1 }
    let verification = try verify(backup)
    let fault = try #require(verification.faults.first)
    #expect(verification.faultCount == [.files: 1] && verification.verdict == .damaged)
    #expect(fault.kind == .digestMismatch && fault.file == "HomeDomain/letter.txt")
    let padding = hasPassword ? ", 1 padding valid apart from the keychain's" : ""
    #expect(
      verification.detail(of: .files)
        == "4 of 4 present, 1 of them empty and not stored, 1 digest matches, 1 without a digest\(padding), 1 damaged")
    #expect(!verification.isOnlyIncomplete)
  }

  @Test("A change at the end of a file without a digest is detected by its padding, with the location")
  func changedPadding() throws {
    let backup = try backup()
    let count = try backup.read("HomeDomain/undigested.txt").count
    try backup.change("HomeDomain/undigested.txt") { $0[count - 1] ^= 1 }
    let verification = try verify(backup)
    let fault = try #require(verification.faults.first)
    #expect(verification.faultCount == [.files: 1])
    #expect(fault.kind == .paddingInvalid && fault.offset == count - 16)
    #expect(fault.reasonWithLocation == "HomeDomain/undigested.txt at byte 48: it does not end with valid padding")
  }

  @Test("A backup with a missing file is incomplete, without other faults")
  func missingFile() throws {
    let backup = try backup()
    try backup.remove("HomeDomain/letter.txt")
    let verification = try verify(backup)
    #expect(verification.faultCount == [.files: 1] && verification.missingCount == 1)
    #expect(verification.isOnlyIncomplete && !verification.isWhole)
    #expect(verification.faults.first?.reasonWithLocation == "HomeDomain/letter.txt: it is listed but not stored")
    #expect(
      verification.detail(of: .files)
        == "3 of 4 present, 1 of them empty and not stored, 1 digest matches, 1 without a digest, 1 padding valid "
        + "apart "
        + "from the keychain's"
    )
  }

  @Test("A backup with a link instead of a file is hostile, and the link is not followed", arguments: [true, false])
  func linkedFile(knowsPassword: Bool) throws {
    let backup = try backup(hasPassword: false)
    let path = try backup.directory.path("backup/" + backup.storedPath("HomeDomain/letter.txt"))
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/etc/hostname")
    let verification = try verify(backup, knowsPassword: knowsPassword)
    #expect(verification.isHostile && verification.faultCount == [.files: 1])
    let fault = try #require(verification.faults.first)
    #expect(fault.kind == .payloadUnreadable && fault.file == "HomeDomain/letter.txt")
  }

  @Test("A backup with a missing keychain file is damaged, not only incomplete")
  func missingKeychain() throws {
    let backup = try backup()
    try backup.remove("KeychainDomain/keychain-backup.plist")
    let verification = try verify(backup)
    #expect(verification.faultCount == [.keychain: 1] && !verification.isOnlyIncomplete)
    #expect(verification.faults.first?.kind == .payloadMissing && verification.isKeychainLost)
    #expect(
      verification.detail(of: .files)
        == "3 of 4 present, 1 of them empty and not stored, the keychain's is not, 1 digest matches, 1 without a "
        + "digest, 2 paddings valid"
    )
    #expect(verification.checks.first { $0.id == .files }?.isOK == false)
    #expect(verification.unchecked.map(\.id) == [.items, .seal] && verification.items == nil)
  }

  @Test("A changed item is reported with its location, and the other items are unaffected")
  func changedItem() throws {
    let backup = try EditableBackup(items: Self.items) { entries in
      var entries = entries
      // The ciphertext of an item begins at byte 52, after the wrapped key.
      entries[1].blob?[60] ^= 1
      return entries
    }
    let verification = try verify(backup)
    let fault = try #require(verification.faults.first)
    #expect(verification.faultCount == [.items: 1])
    #expect(verification.items == .init(readable: 1, deviceBound: 1, damaged: 1))
    #expect(fault.item == 1 && fault.reason == "tag-mismatch" && fault.offset != nil && fault.byteCount != nil)
    let text = try #require(verification.detail(of: .items))
    #expect(
      text.hasPrefix(
        "1 of 3 can be decrypted, 1 needs a device key, 1 cannot be decrypted: item 1, tag-mismatch (blob"
      ))
  }

  @Test(
    "Items of a changed keychain file that can be decrypted are not lost", arguments: [true, false],
    BackupLayout.allCases)
  func changedKeychainFile(hasPassword: Bool, layout: BackupLayout) throws {
    let backup = try EditableBackup(
      hasPassword: hasPassword, layout: layout, items: Self.items, keychainDigest: .wrong)
    let verification = try verify(backup, hardware: .own)
    #expect(verification.faultCount == [.keychain: 1] && verification.faults.first?.kind == .digestMismatch)
    #expect(verification.verdict == .damaged && !verification.isKeychainLost)
    #expect(verification.items == .init(readable: 3, deviceBound: 0, damaged: 0))
    #expect(verification.detail(of: .files)?.hasPrefix("1 of 1 present") == true)
    let fact =
      "KeychainDomain/keychain-backup.plist: the digest recorded for the keychain file does not match; also, "
    #expect(verification.detail(of: .keychain)?.hasPrefix(fact) == true)
  }

  @Test("A truncated encrypted manifest is detected without a password")
  func truncatedEncryptedManifest() throws {
    let backup = try backup()
    try backup.change("Manifest.db") { $0.removeLast(5) }
    let verification = try verify(backup, knowsPassword: false)
    #expect(verification.faultCount == [.database: 1] && verification.isQuick)
    #expect(try verify(backup).faults.contains { $0.reasonWithLocation.ranges(of: "Manifest.db").count > 1 } == false)
  }

  @Test("A damaged class key is reported, and items of other classes are checked")
  func changedClassKey() throws {
    let backup = try backup()
    try backup.changeKeybag("WPKY")
    let verification = try verify(backup)
    #expect(verification.faultCount == [.keybag: 1])
    #expect(verification.detail(of: .keybag) == "10 of 11 class keys can be unwrapped, class 11 cannot")
    #expect(verification.items == .init(readable: 2, deviceBound: 1, damaged: 0))
  }

  @Test("A keychain file that names another keybag is reported, and no device accepts it")
  func otherKeybag() throws {
    let backup = try EditableBackup(items: Self.items, namingKeybag: "00000000-0000-0000-0000-000000000000")
    let verification = try verify(backup)
    #expect(verification.faultCount == [.keychain: 1] && verification.faults.first?.kind == .keybagMismatch)
    #expect(verification.isKeychainRefused && !verification.isKeychainLost)
    #expect(
      verification.detail(of: .keychain)?.contains("it names keybag 00000000-0000-0000-0000-000000000000") == true)
  }

  @Test("The files of a damaged manifest cannot be checked", arguments: BackupLayout.allCases)
  func damagedManifest(layout: BackupLayout) throws {
    let backup = try backup(layout: layout)
    try backup.change(layout == .mbdb ? "Manifest.mbdb" : "Manifest.db") { bytes in
      // The byte is part of the first length in Manifest.mbdb, or of the first block of the encrypted database.
      bytes[6] ^= 0x70
    }
    let verification = try verify(backup)
    #expect(verification.verdict == .damaged && verification.faultCount[.database] == 1)
    #expect(verification.faults.contains { $0.kind == .databaseDamaged })
  }

  @Test("A row whose identifier is not its hash is a fault of the manifest")
  func wrongIdentifier() throws {
    var file = EditableBackup.File("letter.txt", Self.text)
    file.identifier = String(repeating: "0", count: 40)
    let verification = try verify(backup(files: [file]))
    #expect(verification.faultCount == [.database: 1] && verification.faults.first?.kind == .recordMalformed)
  }

  @Test("The faults of a kind are listed up to the limit, and all are counted", arguments: [0, 1])
  func manyFaults(excessCount: Int) throws {
    let files = (0..<BackupVerification.maximumFaultCount + excessCount).map { index in
      var file = EditableBackup.File("\(index).txt", [1])
      file.isStored = false
      return file
    }
    let verification = try verify(backup(files: files))
    #expect(verification.faults.count == BackupVerification.maximumFaultCount)
    #expect(verification.faultCount == [.files: BackupVerification.maximumFaultCount + excessCount])
    #expect(verification.isOnlyIncomplete)
  }

  // MARK: Without the password

  @Test("Without the password, the report states which checks were made")
  func quick() throws {
    let verification = try verify(backup(), knowsPassword: false)
    #expect(verification.isQuick && verification.verdict == .unproven && verification.items == nil)
    #expect(verification.checks.map(\.id) == [.structure, .files, .keybag])
    #expect(verification.unchecked.map(\.id) == [.database, .keychain, .items, .seal])
    #expect(Set(verification.unchecked.map(\.reason)) == ["needs the password", "there is none"])
  }

  @Test("A truncated file is detected without the password")
  func quickTruncated() throws {
    let backup = try backup()
    try backup.change("HomeDomain/letter.txt") { $0.removeLast(5) }
    let verification = try verify(backup, knowsPassword: false)
    let fault = try #require(verification.faults.first)
    // Five of the 64 stored bytes are missing.
    #expect(fault.kind == .payloadCut && fault.byteCount == 59)
    let identifier = try ListedFile.fileIdentifier(domain: "HomeDomain", relativePath: "letter.txt")
    #expect(fault.file == identifier)
  }

  @Test(
    "Without the password, an encrypted file must have a multiple of 16 bytes, and at least 16",
    arguments: [(0, false), (1, false), (15, false), (16, true), (17, false), (32, true), (48, true)])
  func quickSize(byteCount: Int, isValid: Bool) throws {
    let backup = try backup()
    try backup.change("HomeDomain/letter.txt") { $0 = [UInt8](repeating: 7, count: byteCount) }
    let verification = try verify(backup, knowsPassword: false)
    #expect(verification.faults.map(\.kind) == (isValid ? [] : [.payloadCut]))
    #expect(verification.faults.first?.byteCount == (isValid ? nil : byteCount))
  }

  @Test("The digests and the manifest of an iOS 9 backup are checked without the password")
  func quickOldLayout() throws {
    let backup = try backup(layout: .mbdb)
    #expect(try verify(backup, knowsPassword: false).isFaultless)
    try backup.change("HomeDomain/letter.txt") { $0[20] ^= 1 }
    let verification = try verify(backup, knowsPassword: false)
    #expect(verification.unchecked.map(\.id) == [.keychain, .items, .seal])
    #expect(verification.faults.map(\.kind) == [.digestMismatch])
    #expect(verification.faults.first?.file == "HomeDomain/letter.txt")
  }

  @Test("A missing field of the keybag is detected without the password")
  func quickKeybag() throws {
    let verification = try BackupVerification(backup().open(), keys: nil, keybagFault: "it has no SALT")
    #expect(!verification.isQuick && verification.faultCount == [.keybag: 1])
    #expect(verification.detail(of: .keybag) == "it has no SALT")
    #expect(verification.unchecked.map(\.reason).contains("needs the keybag's keys"))
  }

  @Test("A backup that cannot be opened has one fault, and no other checks are made")
  func unopened() throws {
    let verification = BackupVerification(unopened: KeyhaulError(.truncated, "it ends at byte 3"), isQuick: true)
    #expect(verification.verdict == .damaged && !verification.isOnlyIncomplete)
    #expect(verification.faults.map(\.reason) == ["it ends at byte 3"])
    #expect(verification.unchecked.count == BackupVerification.CheckID.allCases.count - 1)
  }

  /// The results of a verification from which the verdict follows, and the expected verdict.
  struct VerdictCase: Sendable {
    var hasFault = false
    /// Whether Status.plist has a state.
    var hasState = true
    /// Whether at least one item can be decrypted. All others are device-bound.
    var isReadable = true
    /// The number of files whose changes cannot be detected.
    var unprovenFileCount = 0
    let verdict: BackupVerification.Verdict
    var isFaultless = true
    var isWhole = true
  }

  @Test(
    "The verdict and its two summaries follow from faults, the state, items and files",
    arguments: [
      VerdictCase(verdict: .whole),
      VerdictCase(unprovenFileCount: 1, verdict: .unproven, isWhole: false),
      VerdictCase(isReadable: false, verdict: .foreign),
      VerdictCase(isReadable: false, unprovenFileCount: 1, verdict: .foreign, isWhole: false),
      VerdictCase(hasState: false, verdict: .unconfirmed, isFaultless: false, isWhole: false),
      VerdictCase(hasState: false, isReadable: false, verdict: .unconfirmed, isFaultless: false, isWhole: false),
      VerdictCase(hasFault: true, verdict: .damaged, isFaultless: false, isWhole: false),
      VerdictCase(
        hasFault: true, hasState: false, isReadable: false, verdict: .damaged, isFaultless: false, isWhole: false),
    ])
  func verdicts(expected: VerdictCase) {
    let (unprovenFileCount, noFiles) = (expected.unprovenFileCount, 0)
    for (withoutDigest, unread) in [(unprovenFileCount, noFiles), (noFiles, unprovenFileCount)] {
      var verification = BackupVerification(isQuick: false)
      if expected.hasFault { verification.add(.init(.files, .digestMismatch, "changed")) }
      verification.statesSnapshotState = expected.hasState
      verification.items =
        expected.isReadable ? .init(readable: 2, deviceBound: 1) : .init(readable: 0, deviceBound: 2)
      verification.files = .init(withoutDigest: withoutDigest, unread: unread)
      #expect(verification.verdict == expected.verdict)
      #expect(verification.isFaultless == expected.isFaultless && verification.isWhole == expected.isWhole)
    }
  }

  // MARK: Progress

  @Test("The verification reports its progress up to the size of all stored files")
  func progress() throws {
    let backup = try backup()
    let archive = try backup.open()
    var doneByteCounts: [Int64] = []
    var totalByteCount: Int64 = 0
    let keys: ClassKeys? = try archive.unlock(password: Secret(utf8: EditableBackup.password)).classKeys(deviceKey: nil)
    _ = try BackupVerification(archive, keys: keys) { done, total in
      doneByteCounts.append(done)
      totalByteCount = total
      return true
    }
    let storedByteCount = try archive.storedFiles().byteCount
    #expect(storedByteCount > Int64(Self.text.count))
    #expect(doneByteCounts == doneByteCounts.sorted() && doneByteCounts.last == totalByteCount)
    #expect(totalByteCount == storedByteCount)
    // The backup deletes its directory when it is released.
    withExtendedLifetime(backup) {}
  }

  @Test("The verification stops if the progress closure returns false")
  func stopped() throws {
    let backup = try backup()
    let archive = try backup.open()
    let keys: ClassKeys? = try archive.unlock(password: Secret(utf8: EditableBackup.password)).classKeys(deviceKey: nil)
    do {
      _ = try BackupVerification(archive, keys: keys) { _, _ in false }
      Issue.record("the verification continued")
    } catch {
      #expect((error.underlying as? DataProtectionError)?.code == .cancelled)
    }
    // The backup deletes its directory when it is released.
    withExtendedLifetime(backup) {}
  }

  @Test("The report contains no content of the backup")
  func secrecy() throws {
    let backup = try EditableBackup(files: Self.files(), items: Self.items) { entries in
      var entries = entries
      entries[0].blob?[60] ^= 1
      return entries
    }
    try backup.change("HomeDomain/letter.txt") { $0[0] ^= 1 }
    var text = ""
    dump(try verify(backup, hardware: .own), to: &text)
    #expect(text.contains("tag-mismatch") && text.contains("letter.txt"))
    #expect(!text.contains("planted") && !text.contains("letter to Anna") && !text.contains(EditableBackup.password))
  }
}

extension BackupVerification {
  /// The detail of a check, or `nil` if it was not made.
  func detail(of id: CheckID) -> String? { checks.first { $0.id == id }?.detail }
}
