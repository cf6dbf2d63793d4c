import KeyhaulKit

extension OutlookSummary {
  /// A sentence about the items that reach a new device: the first line of the report in every format.
  package var verdict: String {
    if sourceIsBackup, let verdict = backupCondition.verdict(deviceNames: deviceNames) { return verdict }
    let counts = counts(onSameDevice: false)
    guard counts.total > 0 else {
      return sourceIsBackup ? "The backup has no keychain items." : "There are no keychain items."
    }
    let totalText = HumanReadable.grouped(counts.total)
    if counts.restoredCount == counts.total {
      return counts.total == 1
        ? "The only keychain item reaches \(newPhone)." : "All \(totalText) keychain items reach \(newPhone)."
    }
    if counts.restoredCount == 0, counts.unreadable == 0, isBlockedByMissingPassword {
      let subject =
        counts.total == 1
        ? "The only keychain item does not reach" : "None of the \(totalText) keychain items reaches"
      return "\(subject) \(newPhone)\(sourceIsBackup ? ": the backup has no password." : " without a backup password.")"
    }
    return partialVerdict(counts)
  }

  /// The names of the source device for the verdict, the full name first. The verdict uses the first name that keeps it
  /// short.
  private var deviceNames: [String] {
    [sourcePhoneName, isRedacted ? sourcePhone : "the old \(model)"].compactMap(\.self)
  }

  /// Returns the verdict if only some items move: "14 of 18 keychain items reach a new iPhone; 4 stay with old-phone."
  private func partialVerdict(_ counts: RestoreOutlook.Counts) -> String {
    let verb = counts.restoredCount == 1 ? "reaches" : "reach"
    let start =
      "\(HumanReadable.grouped(counts.restoredCount)) of \(HumanReadable.count(counts.total, "keychain item")) \(verb) "
      + "\(newPhone); "
    let stayingCount = counts.lost - counts.unreadable
    let clauseWithoutName = Self.stayingClause(stayingCount)
    guard counts.unreadable == 0 else {
      let unreadableClause = "\(HumanReadable.grouped(counts.unreadable)) unreadable"
      return start + (stayingCount == 0 ? "" : clauseWithoutName + ", ") + unreadableClause + "."
    }
    let names = sourcePhoneName == nil ? [] : deviceNames
    let candidates = names.map { start + Self.stayingClause(stayingCount, with: $0) + "." }
    return candidates.first(where: BackupCondition.isShort) ?? start + clauseWithoutName + "."
  }

  /// Returns a clause such as "4 stay with old-phone", or "4 stay behind" if the name is empty.
  private static func stayingClause(_ count: Int, with name: String = "") -> String {
    let verb = count == 1 ? "stays" : "stay"
    return "\(HumanReadable.grouped(count)) \(verb) \(name.isEmpty ? "behind" : "with \(name)")"
  }

  /// An explanation of the verdict for readers who do not know keychain items.
  package var verdictExplanation: String {
    guard backupCondition.isUsable || !sourceIsBackup else {
      return "A keychain item is a password, key or certificate of an app or of iOS."
    }
    return
      "A keychain item is a password, key or certificate of an app or of iOS. Photos, messages and app data are not "
      + "counted here." + (isSourceDeviceAvailable ? "" : " Many items of a real \(model) are iOS's own.")
      + unusableKeysSentence(counts(onSameDevice: false))
  }

  /// Sentences about the origin, protection and condition of the backup. For a device, a sentence about the counted items.
  package var sourceSentences: String {
    guard let conditionSentence else {
      return
        "These are the items of \(HTMLWriter.shortened(sourcePhone)), a virtual device, as it is now; "
        + "no backup was read."
    }
    let date = source.backupDate.flatMap(Timestamp.date).map { " " + LocalTimeFormat.local($0) } ?? ""
    let device = isRedacted ? "the source device" : source.deviceName
    let deviceClause = device.map { " by \(HTMLWriter.shortened($0))" } ?? ""
    let password = nonstandardProtection ?? (source.encrypted ? "with a password" : "without a password")
    let sentences = [
      "The backup was made\(date)\(deviceClause), \(password).", conditionSentence, itemsSentence, deviceItemsSentence,
    ]
    return sentences.compactMap(\.self).joined(separator: " ")
  }

  /// A sentence about the items of a backup that cannot be restored as it is; `nil` if the backup can be restored.
  var itemsSentence: String? {
    let newDeviceCounts = counts(onSameDevice: false)
    return backupCondition.itemsSentence(
      count: restoreOutlook.comparison.items.count, moving: newDeviceCounts.restoredCount, to: newPhone,
      needsPassword: isBlockedByMissingPassword)
  }

  /// The introduction to the counts of a backup that cannot be restored as it is; `nil` if the backup can be restored.
  var hypothesis: String? { backupCondition.isUsable ? nil : "If this backup could be restored as it is:" }

  /// A sentence about counted items that are on the virtual device only; `nil` if there are none.
  private var deviceItemsSentence: String? {
    guard backupCondition.isUsable, let sourceDeviceItems, !sourceDeviceItems.absent.isEmpty else { return nil }
    let count = sourceDeviceItems.absent.count
    return "\(HumanReadable.count(count, "more item")) \(count == 1 ? "is" : "are") only on "
      + "\(HTMLWriter.shortened(sourceDeviceItems.device)), a virtual device that Keyhaul also read."
  }

  /// A sentence about the condition of the backup's keychain; `nil` if the source is a device.
  var conditionSentence: String? {
    guard sourceIsBackup else { return nil }
    if let obstacle = findings.obstacle { return "\(obstacle.prefix(1).uppercased() + obstacle.dropFirst())." }
    // Unreadable items that are only on the source device are not damage in the backup.
    let damagedCount = counts(onSameDevice: false).unreadable - (sourceDeviceItems?.unreadable.count ?? 0)
    if damagedCount > 0 { return "\(HumanReadable.count(damagedCount, "item")) cannot be read in this copy." }
    switch backupCondition {
    case .usable: break
    case .unconfirmed: return "Nothing in it says whether the device finished it."
    case .changed, .damaged, .decryptedCopy: return "Keyhaul found damage in it."
    }
    let deviceKeyItemCount = countDeviceKeyItems()
    guard deviceKeyItemCount > 0, !restoreOutlook.triedDeviceKey else {
      return "Keyhaul found no damage in its keychain."
    }
    return deviceKeyItemCount == restoreOutlook.comparison.items.count
      ? "Keyhaul could not check its items: only that device can decrypt them."
      : "Keyhaul found no damage in the items that it can decrypt."
  }

  /// Returns the number of items that only the source device's key can decrypt. Without this key, Keyhaul cannot
  /// check them for damage.
  private func countDeviceKeyItems() -> Int {
    restoreOutlook.items.count { $0.reason == .backupNotEncrypted || $0.reason == .deviceBound }
  }
}

extension OutlookSummary {
  /// Sentences about the items that are restored and lost on each device.
  var details: String {
    if sourceIsBackup, !backupCondition.isUsable {
      return [verdict, itemsSentence, sourceDeviceItems == nil ? Self.uncountedSentence : nil].compactMap(\.self)
        .joined(separator: " ")
    }
    let newDeviceCounts = counts(onSameDevice: false)
    guard newDeviceCounts.total > 0 else { return emptyText }
    var sentences = [
      newDeviceSentence(newDeviceCounts) + unusableKeysSentence(newDeviceCounts),
      sameDeviceSentence(counts(onSameDevice: true)),
    ]
    if !sourceIsBackup { sentences.append(otherPasswordSentence) }
    if sourceIsBackup, sourceDeviceItems == nil { sentences.append(Self.uncountedSentence) }
    if let sourceDeviceItems, sourceDeviceItems.removedCount > 0 {
      sentences.append(
        "Items that \(sourceDeviceItems.device) had when the backup was made, but no longer has, are not counted.")
    }
    return sentences.joined(separator: " ")
  }

  private static let uncountedSentence = "Items that never enter a backup are lost in both cases and are not counted."

  func counts(onSameDevice: Bool) -> RestoreOutlook.Counts { restoreOutlook.counts(onSameDevice: onSameDevice) }

  private var emptyText: String {
    guard sourceIsBackup else { return "\(sourcePhone) has no items, so nothing is lost." }
    return "The backup contains no items. Nothing moves to \(newPhone), and nothing is restored to \(sourcePhone)."
      + (sourceDeviceItems == nil ? " " + Self.uncountedSentence : "")
  }

  /// Returns the subject of sentences: "the 18 items in the backup".
  private func subject(_ counts: RestoreOutlook.Counts) -> String {
    let items = counts.total == 1 ? "the only item" : "the \(HumanReadable.grouped(counts.total)) items"
    guard sourceIsBackup else { return "\(items) on \(sourcePhone)" }
    guard let sourceDeviceItems, !sourceDeviceItems.absent.isEmpty else { return "\(items) in the backup" }
    return sourceDeviceItems.removedCount == 0
      ? "\(items) on \(sourceDeviceItems.device)" : "\(items) in the backup and on \(sourceDeviceItems.device)"
  }

  /// Returns the sentence about a new device: "Of the 18 items in the backup, 14 move to a new iPhone and 4 do not."
  private func newDeviceSentence(_ counts: RestoreOutlook.Counts) -> String {
    let (moving, lost) = (counts.restoredCount, counts.lost)
    switch (moving, lost) {
    case (0, _): return "None of \(subject(counts)) moves to \(newPhone)\(missingPasswordClause)."
    case (_, 0):
      let items = subject(counts)
      return moving == 1
        ? "\(items.prefix(1).uppercased() + items.dropFirst()) moves to \(newPhone)."
        : "All of \(items) move to \(newPhone)."
    case _:
      return
        "Of \(subject(counts)), \(HumanReadable.grouped(moving)) \(moving == 1 ? "moves" : "move") to \(newPhone) and "
        + "\(HumanReadable.grouped(lost)) \(lost == 1 ? "does" : "do") not."
    }
  }

  /// Returns the sentence about Secure Enclave keys that move but are unusable on a new device; empty if there are none.
  private func unusableKeysSentence(_ counts: RestoreOutlook.Counts) -> String {
    guard let count = counts.byWarning[.migratesButUnusable] else { return "" }
    if count == 1 {
      return
        " 1 of the items that move has the format of a key that only the Secure Enclave of \(sourcePhone) can use, "
        + "and is unusable on \(newPhone)."
    }
    return
      " \(HumanReadable.grouped(count)) of the items that move have the format of keys that only the Secure Enclave "
      + "of \(sourcePhone) can use, and are unusable on \(newPhone)."
  }

  /// Returns the sentence about the erased device: "After an erase, 18 of them are restored to old-phone and 4 are not."
  private func sameDeviceSentence(_ counts: RestoreOutlook.Counts) -> String {
    // The `expected` items were judged only by their protection class.
    guard counts.expected == 0 else { return uncheckedSameDeviceSentence(counts) }
    switch counts.arrives {
    case 0: return "After an erase, none of them is restored to \(sourcePhone)."
    case counts.total:
      return "After an erase, \(counts.total == 1 ? "it is" : "all of them are") restored to \(sourcePhone)."
    default:
      let restoredClause = "\(HumanReadable.grouped(counts.arrives)) of them \(counts.arrives == 1 ? "is" : "are")"
      let lossClause =
        counts.lost == 0 ? "" : " and \(HumanReadable.grouped(counts.lost)) \(counts.lost == 1 ? "is" : "are") not"
      return "After an erase, \(restoredClause) restored to \(sourcePhone)\(lossClause)."
    }
  }

  /// Returns the sentence about the erased device if some items were judged only by their protection class.
  private func uncheckedSameDeviceSentence(_ counts: RestoreOutlook.Counts) -> String {
    let expected = HumanReadable.grouped(counts.expected)
    let restoredClause = "\(HumanReadable.grouped(counts.arrives)) of them \(counts.arrives == 1 ? "is" : "are")"
    let start =
      counts.arrives == 0
      ? "After an erase, \(expected) of them should be restored to \(sourcePhone)"
      : "After an erase, \(restoredClause) restored to \(sourcePhone), and \(expected) more should be"
    let classes = counts.expected == 1 ? "its class" : "their classes"
    let lossSentence =
      counts.lost == 0
      ? "" : " \(HumanReadable.grouped(counts.lost)) \(counts.lost == 1 ? "is" : "are") not restored."
    return "\(start), judging by \(classes); this could not be checked.\(lossSentence)"
  }

  /// Whether items stay behind because the backup has no password.
  private var isBlockedByMissingPassword: Bool {
    restoreOutlook.items.contains { $0.reason == .backupNotEncrypted } && !restoreOutlook.hasPassword
      && nonstandardProtection == nil
  }

  /// The end of a sentence that names the missing backup password as the cause; empty if it is not the cause.
  private var missingPasswordClause: String {
    guard isBlockedByMissingPassword else { return "" }
    return sourceIsBackup ? "; the backup has no password" : " in a backup without a password"
  }

  /// A sentence about the alternative to the planned backup of a device: without a password instead of with one, or the
  /// other way around.
  private var otherPasswordSentence: String {
    func restoredCountText(onSameDevice: Bool) -> String {
      let counts = restoreOutlook.counts(
        RestoreScenario(hasPassword: !restoreOutlook.hasPassword, onSameDevice: onSameDevice))
      return counts.restoredCount == 0 ? "none" : HumanReadable.grouped(counts.restoredCount)
    }
    let (planned, other) = restoreOutlook.hasPassword ? ("with a", "Without") : ("without a", "With")
    return "This is for a backup \(planned) password. \(other) one, \(restoredCountText(onSameDevice: false)) move to "
      + "\(newPhone), and \(restoredCountText(onSameDevice: true)) are restored to \(sourcePhone)."
  }

  /// Sentences that state how Keyhaul determined the items that return to the same device.
  var basis: String {
    guard sourceIsBackup else {
      return "Keyhaul made a backup in memory, and decrypted it with \(sourcePhone)'s key and with another device's."
    }
    let deviceKeyItemCount = countDeviceKeyItems()
    let lostCount = restoreOutlook.items.count { $0.reason?.isLostInThisCopy == true }
    guard deviceKeyItemCount > 0 else {
      return lostCount == 0
        ? "Keyhaul decrypted every item. None of them needs a device key."
        : "Keyhaul tried to decrypt every item. \(HumanReadable.grouped(lostCount)) cannot be read in this copy. None of the "
          + "others needs a device key."
    }
    guard restoreOutlook.triedDeviceKey, let deviceKeyOwner else {
      return
        "For \(newPhone), Keyhaul tried to decrypt every item. For \(sourcePhone), it judged "
        + "\(HumanReadable.count(deviceKeyItemCount, "item")) by class, because the device key that decrypts "
        + "\(deviceKeyItemCount == 1 ? "it" : "them") is not available."
    }
    return "Keyhaul tried to decrypt every item. For \(sourcePhone), it used the device key of \(deviceKeyOwner)."
  }
}
