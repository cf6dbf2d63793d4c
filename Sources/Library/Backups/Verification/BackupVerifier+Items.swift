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
      let opened = if let list { list } else { try archive.fileList(with: keys) }
      let reading = try KeychainReading(of: archive, in: opened, with: keys)
      for note in reading.notes { record(note) }
      checkUUID(of: reading.keybagUUID)
      findings.conclude(
        .keychain,
        "\(HumanReadable.count(reading.index.count, "item")) in \(HumanReadable.count(reading.byteCount, "byte"))")
      return reading.index
    } catch {
      guard error.category != .failed else { throw error }
      if error.code == .noKeychain, !archive.hasKeychain {
        findings.conclude(.keychain, "none in this backup")
        return nil
      }
      let isMissing = error.code == .payloadMissing
      findings.hasFilesByDomain = isMissing && archive.hasFilesByDomain
      findings.found.append(isMissing ? .keychainMissing(reason: error.reason) : .keychainDamaged(reason: error.reason))
      let kind: BackupVerification.Fault.Kind = isMissing ? .payloadMissing : .keychainDamaged
      // A device may write an unknown version.
      if error.code != .unsupported { findings.note(error) }
      findings.add(.init(.keychain, kind, file: Self.keychainName, error.reason))
      findings.conclude(.keychain, error.reason)
      return nil
    }
  }

  /// Checks an unencrypted keychain file: its format and keybag. Its digest is part of the check of files.
  ///
  /// - Parameter reason: The reason why no further checks are made.
  /// - Throws: The errors of `checkKeychain`.
  mutating func checkKeychainInClear(_ reason: String) throws(KeyhaulError) {
    guard !archive.areFilesEncrypted, !archive.isListEncrypted else { return findings.skip(.keychain, reason: reason) }
    do throws(KeyhaulError) {
      let payload = try archive.keychainFile()
      for note in payload.notes where note != .digestDiffers { record(note) }
      checkUUID(of: payload.file.keybagUUID)
      findings.conclude(
        .keychain,
        "\(HumanReadable.count(payload.file.entries.count, "item")) in \(HumanReadable.count(payload.bytes.count, "byte")), none "
          + "of them checked")
    } catch {
      guard error.category != .failed else { throw error }
      // A missing file or an unreadable list is a fault of other checks.
      guard error.category == .damaged, error.code != .payloadMissing, findings.faultCount[.database] == nil else {
        return findings.skip(
          .keychain,
          reason: error.code == .noKeychain ? "there is none in this backup" : "the keychain file cannot be read")
      }
      findings.found.append(.keychainDamaged(reason: error.reason))
      findings.note(error)
      findings.add(.init(.keychain, .keychainDamaged, file: Self.keychainName, error.reason))
      findings.conclude(.keychain, error.reason)
    }
  }

  private mutating func record(_ anomaly: BackupAnomaly) {
    switch anomaly {
    case .digestDiffers:
      findings.add(.init(.keychain, .digestMismatch, file: Self.keychainName, anomaly.description))
    // The structure check reports these faults.
    case .unfinished, .propertyListUnreadable: return
    case .finding(let finding): record(finding, in: finding.place == Self.keychainName ? .keychain : .database)
    default: if !findings.notes.contains(anomaly.description) { findings.notes.append(anomaly.description) }
    }
  }

  static var keychainName: String { "\(KeychainPayload.domain)/\(KeychainPayload.relativePath)" }

  private mutating func checkUUID(of named: String?) {
    guard let named, let own = archive.keybag.uuidText, named != own else { return }
    findings.found.append(.keybagMismatch(file: named, keybag: own))
    findings.add(
      .init(
        .keychain, .keybagMismatch, file: Self.keychainName,
        "it names keybag \(named), but Manifest.plist contains \(own): "
          + KeyhaulError.meaning(ofName: named, for: own)))
  }

  /// Checks all items.
  mutating func checkItems(
    of file: KeychainIndex?, with keys: ClassKeys
  ) throws(KeyhaulError) {
    guard let file else {
      if findings.faultCount[.keychain] != nil { findings.skip(.items, reason: "the keychain file cannot be read") }
      return
    }
    var hardware = DeviceKeyEvidence()
    var closed: [BackupItem] = []
    var refused: [BackupVerification.Fault] = []
    try BackupItem.openPortions(of: file, with: keys) { items in
      hardware.add(items)
      closed += items.filter { $0.item == nil }
      refused += items.compactMap(Self.refusal)
    }
    var counts = BackupVerification.ItemCounts()
    counts.readable = file.count - closed.count - refused.count
    counts.damaged = refused.count
    var first = refused.first
    for fault in refused { findings.add(fault) }
    for item in closed {
      guard let reason = item.reason(hardware: hardware, backupHasPassword: archive.isEncrypted) else { continue }
      guard reason.isDamage else {
        counts.deviceBound += 1
        continue
      }
      counts.damaged += 1
      let fault = Self.fault(of: item, reason)
      first = first ?? fault
      findings.add(fault)
    }
    findings.items = counts
    findings.hardware = hardware
    findings.conclude(.items, detail(of: counts, refusedCount: refused.count, first: first))
  }

  /// Returns the fault of a decrypted item that devices refuse, or `nil` if there is none. A plan has the same reason.
  private static func refusal(of archived: BackupItem) -> BackupVerification.Fault? {
    // A secret without a name, as in iOS 4, is not damaged.
    guard let item = archived.item, !archived.isSecretOnly else { return nil }
    do throws(KeychainRuleError) {
      _ = try IncomingItem(item, persistentReference: archived.persistentReference)
      return nil
    } catch {
      return .init(
        .items, .itemDamaged, file: keychainName, offset: archived.blob?.offset, byteCount: archived.blob?.byteCount,
        item: archived.index, "\(Reason.malformed.rawValue): \(error.reason)")
    }
  }

  private static func fault(of item: BackupItem, _ reason: Reason) -> BackupVerification.Fault {
    .init(
      .items, .itemDamaged, file: keychainName, offset: item.blob?.offset, byteCount: item.blob?.byteCount,
      item: item.index, reason.rawValue)
  }

  /// Returns a text such as "12 of 16 can be decrypted, 3 need a device's hardware key, 1 cannot be decrypted: item 15,
  /// tag-mismatch (…)".
  private func detail(
    of counts: BackupVerification.ItemCounts, refusedCount: Int, first: BackupVerification.Fault?
  ) -> String {
    var parts = ["\(HumanReadable.grouped(counts.readable)) of \(HumanReadable.grouped(counts.total)) can be decrypted"]
    if counts.deviceBound > 0 {
      let (count, needs) = (HumanReadable.grouped(counts.deviceBound), counts.deviceBound == 1 ? "needs" : "need")
      parts.append(
        findings.hardware.isDivided
          ? "\(count) \(needs) another device's hardware key or \(counts.deviceBound == 1 ? "is" : "are") damaged; "
            + "Keyhaul cannot tell which"
          : "\(count) \(needs) a device's hardware key")
    }
    guard counts.damaged > 0 else { return parts.joined(separator: ", ") }
    let isOne = counts.damaged == 1
    let fact =
      switch refusedCount {
      case 0: "cannot be decrypted"
      case counts.damaged:
        isOne ? "more can be decrypted, but no device accepts it" : "more can be decrypted, but no device accepts them"
      default: "cannot be decrypted, or no device accepts them"
      }
    var last = "\(HumanReadable.grouped(counts.damaged)) \(fact)"
    if isOne, let first { last += ": \(first.placeText)" }
    return (parts + [last]).joined(separator: ", ")
  }
}

extension BackupVerification.Fault {
  /// The location and the fault: "item 15, tag-mismatch (blob of 312 bytes at byte 7,994 of the keychain file)", or the
  /// file with the reason.
  package var placeText: String {
    guard let item else {
      let place = offset.map { " at byte \(HumanReadable.grouped($0))" } ?? ""
      // An error of reading may already contain the file.
      guard let file, !reason.hasPrefix("\(file): ") else { return reason }
      return "\(file)\(place): \(reason)"
    }
    guard let offset, let byteCount else { return "item \(item), \(reason)" }
    return
      "item \(item), \(reason) (blob of \(HumanReadable.count(byteCount, "byte")) at byte \(HumanReadable.grouped(offset)) of the keychain file)"
  }
}
