import KeyhaulKit

extension Inspection {
  /// The sentences about the keychain: whether it is readable, and the devices that it can be restored to.
  var keychainText: String { unreadableKeychainText ?? unrestorableKeychainText ?? restorableKeychainText }

  /// The reason why the keychain cannot be read; `nil` if there is none.
  private var unreadableKeychainText: String? {
    if archive.isPartial {
      return archive.hasKeychain
        ? "its file is stored; its contents are not known" : "its file is not stored"
    }
    if let failure = unlocked?.keychainReadFailure {
      return "cannot be read: \(failure.fact). Its contents are not known."
    }
    if archive.hasKeychain { return nil }
    return archive.isEncrypted && !isUnlocked
      ? "its file is missing; with the password, the manifest shows whether there should be one"
      : "none in this backup"
  }

  /// The reason why no device can restore the keychain; `nil` if there is none.
  private var unrestorableKeychainText: String? {
    if let unbound, unbound.blocksRestore {
      return
        "present, but not trustworthy: \(unbound.summary). As a result, \(unbound.consequence). They cannot be restored."
    }
    if let itemCounts, itemCounts.secretOnly > 0, itemCounts.secretOnly == itemCounts.total {
      return "present. Its items are secrets without names, as iOS 4 stored them. They cannot be restored, but "
        + "\"export --reveal\" saves them."
    }
    if findings.contains(.decryptedCopy) {
      return "present. A decrypted copy cannot be restored; use the backup that it was made from."
    }
    return isKeybagUnusable
      ? "present, but encrypted: its keybag is unusable, so no item can be decrypted anywhere." : nil
  }

  private var restorableKeychainText: String {
    let sourceName = archive.device.name ?? "the source device"
    guard archive.isEncrypted else {
      return "present. The backup has no password, so its items can be restored only to \(sourceName)."
    }
    let presence = isUnlocked ? "present" : "present, encrypted"
    if let unbound {
      return
        "\(presence), but no device writes such a keychain: \(unbound.summary). As a result, \(unbound.consequence), like "
        + "migratable items."
    }
    return
      "\(presence). With the password, its items can move to any device; this-device-only items can be restored only "
      + "to \(sourceName)."
  }

  /// The counts of the items: "18 items: 12 generic, 6 internet · 4 any device, 14 this device only".
  func itemsText(_ itemCounts: BackupItemCounts) -> String {
    let kinds = ItemKind.allCases.compactMap { kind in
      itemCounts.countByKind[kind].map { count in
        switch kind {
        case .genericPassword, .internetPassword: "\(HumanReadable.grouped(count)) \(ItemText.kind(kind))"
        case .certificate, .key: HumanReadable.count(count, ItemText.kind(kind))
        }
      }
    }
    guard !kinds.isEmpty else { return "none" }
    let nowhereClause = itemCounts.secretOnly == 0 ? "" : ", \(HumanReadable.grouped(itemCounts.secretOnly)) nowhere"
    return "\(HumanReadable.count(itemCounts.total, "item")): \(kinds.joined(separator: ", ")) · "
      + portabilityText(itemCounts) + nowhereClause
  }

  private func portabilityText(_ itemCounts: BackupItemCounts) -> String {
    if isKeybagUnusable { return "none can be restored from this copy" }
    let unprotectedClasses = ProtectionClass.allCases.filter { unbound?.contains($0) == true }
    let unprotectedCount = unprotectedClasses.reduce(0) { $0 + itemCounts.countByProtection[$1, default: 0] }
    if archive.isEncrypted {
      let portableCount = HumanReadable.grouped(itemCounts.migratable + unprotectedCount)
      let boundCount = HumanReadable.grouped(itemCounts.thisDeviceOnly - unprotectedCount)
      return "\(portableCount) any device, \(boundCount) this device only"
    }
    return unbound == nil
      ? "with a password, \(HumanReadable.grouped(itemCounts.migratable)) could go to any device"
      : "\(HumanReadable.grouped(unprotectedCount)) that anyone can decrypt"
  }

  /// Whether no item can be decrypted on any device.
  package var isKeybagUnusable: Bool { findings.contains(where: \.preventsReadingKeybag) }

  /// The sentence about items that cannot move to another device, or that no device can decrypt: "Most of its items (14 of
  /// 18) are this-device-only: …".
  ///
  /// `nil` if no items are known, or if class keys are not bound to the device. An encrypted backup has no such sentence
  /// if at least half of its items can move, and an unencrypted one has none if it has secrets without names.
  package var boundText: String? {
    guard let itemCounts, itemCounts.total > 0, unbound == nil else { return nil }
    let sourceName = archive.device.name ?? "the source device"
    let total = HumanReadable.count(itemCounts.total, "item")
    if isKeybagUnusable { return "Its keybag is unusable: none of its \(total) can be decrypted, on any device." }
    guard archive.isEncrypted else {
      return itemCounts.secretOnly > 0 ? nil : "No password: its \(total) can be restored only to \(sourceName)."
    }
    guard itemCounts.thisDeviceOnly * 2 > itemCounts.total else { return nil }
    let count = HumanReadable.grouped(itemCounts.thisDeviceOnly)
    let verb = itemCounts.thisDeviceOnly == 1 ? "is" : "are"
    return itemCounts.thisDeviceOnly == itemCounts.total
      ? "All of its items (\(count)) \(verb) this-device-only: only \(sourceName) can restore them."
      : "Most of its items (\(count) of \(total)) \(verb) this-device-only: only \(sourceName) can restore them."
  }

  /// The items that cannot be decrypted, for each reason: "3 device-bound: 2 generic (when unlocked, this device), 1 key
  /// (…)"; `nil` if all items can be decrypted. Names and access groups are encrypted too.
  package var undecryptedText: String? {
    let groups = UndecryptedItems(unlocked).groups
    guard !groups.isEmpty else { return nil }
    return Reason.allCases.compactMap { reason in
      let matching = groups.filter { $0.reason == reason }
      guard !matching.isEmpty else { return nil }
      let parts = matching.map { group in
        "\(HumanReadable.grouped(group.count)) \(ItemText.kind(group.kind)) (\(ItemText.protection(group.protection)))"
      }
      let count = matching.reduce(0) { $0 + $1.count }
      return "\(HumanReadable.grouped(count)) \(reason.rawValue): \(parts.joined(separator: ", "))"
    }.joined(separator: "; ")
  }
}
