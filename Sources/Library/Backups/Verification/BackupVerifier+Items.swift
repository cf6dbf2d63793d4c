import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules

extension BackupVerifier {
  /// Checks that the keychain file exists, has valid padding, matches its digest and format, and belongs to this
  /// backup's keybag.
  ///
  /// - Returns: The index of the file, or `nil` if it is missing or unreadable.
  /// - Throws: A system error, which is not a fault of the backup.
  mutating func checkKeychain(
    in list: FileList?, with keys: ClassKeys
  ) throws(KeyhaulError) -> KeychainIndex? {
    do throws(KeyhaulError) {
      let openList = if let list { list } else { try archive.fileList(with: keys) }
      let reading = try KeychainReading(of: archive, in: openList, with: keys)
      for anomaly in reading.anomalies { record(anomaly) }
      checkKeybagUUID(reading.keybagUUID)
      verification.conclude(
        .keychain,
        "\(HumanReadable.count(reading.index.count, "item")) in \(HumanReadable.count(reading.byteCount, "byte"))")
      return reading.index
    } catch {
      guard error.category != .failed else { throw error }
      if error.code == .noKeychain, !archive.hasKeychain {
        verification.conclude(.keychain, "none in this backup")
        return nil
      }
      let isMissing = error.code == .payloadMissing
      verification.hasFilesByDomain = isMissing && archive.hasFilesByDomain
      verification.findings.append(
        isMissing ? .keychainMissing(reason: error.reason) : .keychainDamaged(reason: error.reason))
      let kind: BackupVerification.Fault.Kind = isMissing ? .payloadMissing : .keychainDamaged
      // An unsupported version is not suspicious: a newer iOS may write it.
      if error.code != .unsupported { verification.recordHostility(of: error) }
      verification.add(.init(.keychain, kind, file: Self.keychainName, error.reason))
      verification.conclude(.keychain, error.reason)
      return nil
    }
  }

  /// Checks an unencrypted keychain file: its format and keybag. Its digest is part of the check of files.
  ///
  /// - Parameter reason: The reason to skip the check if the file is encrypted.
  /// - Throws: The errors of `checkKeychain`.
  mutating func checkPlaintextKeychain(orSkipBecause reason: String) throws(KeyhaulError) {
    guard !archive.areFilesEncrypted, !archive.isListEncrypted else {
      return verification.skip(.keychain, reason: reason)
    }
    do throws(KeyhaulError) {
      let payload = try archive.keychainFile()
      for anomaly in payload.anomalies where anomaly != .digestDiffers { record(anomaly) }
      checkKeybagUUID(payload.file.keybagUUID)
      verification.conclude(
        .keychain,
        "\(HumanReadable.count(payload.file.entries.count, "item")) in \(HumanReadable.count(payload.bytes.count, "byte")), none "
          + "of them checked")
    } catch {
      guard error.category != .failed else { throw error }
      // A missing file or an unreadable list is a fault of other checks.
      guard error.category == .damaged, error.code != .payloadMissing, verification.faultCount[.database] == nil else {
        return verification.skip(
          .keychain,
          reason: error.code == .noKeychain ? "there is none in this backup" : "the keychain file cannot be read")
      }
      verification.findings.append(.keychainDamaged(reason: error.reason))
      verification.recordHostility(of: error)
      verification.add(.init(.keychain, .keychainDamaged, file: Self.keychainName, error.reason))
      verification.conclude(.keychain, error.reason)
    }
  }

  private mutating func record(_ anomaly: ToleratedAnomaly) {
    switch anomaly {
    case .digestDiffers:
      verification.add(.init(.keychain, .digestMismatch, file: Self.keychainName, anomaly.description))
    // The structure check reports these faults.
    case .unfinished, .propertyListUnreadable: return
    case .finding(let finding): record(finding, in: finding.file == Self.keychainName ? .keychain : .database)
    default: if !verification.notes.contains(anomaly.description) { verification.notes.append(anomaly.description) }
    }
  }

  static var keychainName: String { "\(KeychainPayload.domain)/\(KeychainPayload.relativePath)" }

  /// Checks that the keychain file names the backup's keybag.
  ///
  /// - Parameter fileUUID: The keybag identifier in the keychain file.
  private mutating func checkKeybagUUID(_ fileUUID: String?) {
    guard let fileUUID, let keybagUUID = archive.keybag.uuidText, fileUUID != keybagUUID else { return }
    verification.findings.append(.keybagMismatch(file: fileUUID, keybag: keybagUUID))
    verification.add(
      .init(
        .keychain, .keybagMismatch, file: Self.keychainName,
        "it names keybag \(fileUUID), but Manifest.plist contains \(keybagUUID): "
          + KeyhaulError.meaning(ofName: fileUUID, for: keybagUUID)))
  }

  /// Checks all items.
  ///
  /// - Parameter index: The index of the keychain file, or `nil` if it is missing or unreadable.
  mutating func checkItems(
    of index: KeychainIndex?, with keys: ClassKeys
  ) throws(KeyhaulError) {
    guard let index else {
      if verification.faultCount[.keychain] != nil {
        verification.skip(.items, reason: "the keychain file cannot be read")
      }
      return
    }
    var hardware = DeviceKeyEvidence()
    var undecrypted: [BackupItem] = []
    var refusals: [BackupVerification.Fault] = []
    try BackupItem.openChunks(of: index, with: keys) { items in
      hardware.add(items)
      undecrypted += items.filter { $0.item == nil }
      refusals += items.compactMap(Self.refusal)
    }
    let reasons = undecrypted.compactMap { item in
      item.reason(hardware: hardware, backupHasPassword: archive.isEncrypted).map { (item: item, reason: $0) }
    }
    let damage = reasons.filter { $0.reason.isDamage }.map { Self.fault(of: $0.item, $0.reason) }
    let faults = refusals + damage
    for fault in faults { verification.add(fault) }

    var counts = BackupVerification.ItemCounts()
    counts.readable = index.count - undecrypted.count - refusals.count
    counts.deviceBound = reasons.count - damage.count
    counts.damaged = faults.count
    verification.items = counts
    verification.hardware = hardware
    verification.conclude(.items, detail(of: counts, refusedCount: refusals.count, firstFault: faults.first))
  }

  /// Returns a fault if no device would accept this decrypted item, otherwise `nil`. A plan gives the same reason.
  private static func refusal(of backupItem: BackupItem) -> BackupVerification.Fault? {
    // A secret without a name, as in iOS 4, is not damaged.
    guard let item = backupItem.item, !backupItem.isSecretOnly else { return nil }
    do throws(KeychainRuleError) {
      _ = try IncomingItem(item, persistentReference: backupItem.persistentReference)
      return nil
    } catch {
      return .init(
        .items, .itemDamaged, file: keychainName, offset: backupItem.blob?.offset,
        byteCount: backupItem.blob?.byteCount, item: backupItem.index, "\(Reason.malformed.rawValue): \(error.reason)")
    }
  }

  private static func fault(of item: BackupItem, _ reason: Reason) -> BackupVerification.Fault {
    .init(
      .items, .itemDamaged, file: keychainName, offset: item.blob?.offset, byteCount: item.blob?.byteCount,
      item: item.index, reason.rawValue)
  }

  /// Returns a text such as "12 of 16 can be decrypted, 3 need a device key, 1 cannot be decrypted: item 15,
  /// tag-mismatch (…)".
  private func detail(
    of counts: BackupVerification.ItemCounts, refusedCount: Int, firstFault: BackupVerification.Fault?
  ) -> String {
    var parts = ["\(HumanReadable.grouped(counts.readable)) of \(HumanReadable.grouped(counts.total)) can be decrypted"]
    if counts.deviceBound > 0 {
      let count = HumanReadable.grouped(counts.deviceBound)
      let (needs, are) = counts.deviceBound == 1 ? ("needs", "is") : ("need", "are")
      parts.append(
        verification.hardware.isMixed
          ? "\(count) \(needs) another device's key or \(are) damaged; Keyhaul cannot tell which"
          : "\(count) \(needs) a device key")
    }
    guard counts.damaged > 0 else { return parts.joined(separator: ", ") }
    let isOne = counts.damaged == 1
    let damage =
      switch refusedCount {
      case 0: "cannot be decrypted"
      case counts.damaged:
        isOne ? "more can be decrypted, but no device accepts it" : "more can be decrypted, but no device accepts them"
      default: "cannot be decrypted, or no device accepts them"
      }
    parts.append("\(HumanReadable.grouped(counts.damaged)) \(damage)")
    let text = parts.joined(separator: ", ")
    guard isOne, let firstFault else { return text }
    return "\(text): \(firstFault.reasonWithLocation)"
  }
}

extension BackupVerification.Fault {
  /// The location and the fault: "item 15, tag-mismatch (blob of 312 bytes at byte 7,994 of the keychain file)", or the
  /// file with the reason.
  package var reasonWithLocation: String {
    guard let item else {
      let location = offset.map { " at byte \(HumanReadable.grouped($0))" } ?? ""
      // A read error may already contain the file.
      guard let file, !reason.hasPrefix("\(file): ") else { return reason }
      return "\(file)\(location): \(reason)"
    }
    guard let offset, let byteCount else { return "item \(item), \(reason)" }
    return
      "item \(item), \(reason) (blob of \(HumanReadable.count(byteCount, "byte")) at byte \(HumanReadable.grouped(offset)) of the keychain file)"
  }
}
