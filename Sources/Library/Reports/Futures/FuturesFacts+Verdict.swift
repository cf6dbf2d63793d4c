import KeyhaulKit

extension FuturesFacts {
  /// What comes back and what is lost on either, in sentences; it stands first in every form of the report.
  var verdict: String {
    let new = counts(onSameDevice: false)
    guard new.total > 0 else { return nothing }
    var sentences = [arrival(new) + unusable(new), self.return(counts(onSameDevice: true))]
    if !isOfBackup { sentences.append(other) }
    if isOfBackup, maker == nil { sentences.append(Self.uncounted) }
    if let maker, maker.goneCount > 0 {
      sentences.append("Items that \(maker.device) had when the backup was made, but no longer has, are not counted.")
    }
    return sentences.joined(separator: " ")
  }

  private static let uncounted = "Items that no backup contains are lost in both cases and are not counted."

  func counts(onSameDevice: Bool) -> MigrationFutures.Counts { futures.counts(onSameDevice: onSameDevice) }

  private var nothing: String {
    guard isOfBackup else { return "\(phone) has no items, so nothing is lost." }
    return "The backup contains no items. It brings nothing to \(newPhone), and nothing back to \(phone)."
      + (maker == nil ? " " + Self.uncounted : "")
  }

  /// "the 18 items in the backup"
  private func all(_ counts: MigrationFutures.Counts) -> String {
    let one = counts.total == 1
    let items = one ? "the only item" : "the \(Amounts.grouped(counts.total)) items"
    guard isOfBackup else { return "\(items) of \(phone)" }
    guard let maker, !maker.absent.isEmpty else { return "\(items) in the backup" }
    return maker.goneCount == 0 ? "\(items) of \(maker.device)" : "\(items) in the backup and on \(maker.device)"
  }

  /// "14 of the 18 items in the backup reach a new iPhone, 4 do not."
  private func arrival(_ counts: MigrationFutures.Counts) -> String {
    let (reached, lost) = (counts.comesBack, counts.lost)
    switch (reached, lost) {
    case (0, _): return "None of \(all(counts)) reaches \(newPhone)\(cause(counts))."
    case (_, 0):
      let items = all(counts)
      return reached == 1
        ? "\(items.prefix(1).uppercased() + items.dropFirst()) reaches \(newPhone)."
        : "All of \(items) reach \(newPhone)."
    case _:
      return "\(Amounts.grouped(reached)) of \(all(counts)) \(reached == 1 ? "reaches" : "reach") \(newPhone), "
        + "\(Amounts.grouped(lost)) \(lost == 1 ? "does" : "do") not."
    }
  }

  /// " 1 of those has the form of a key that only the Secure Enclave of old-phone can use, and is of no use there."
  private func unusable(_ counts: MigrationFutures.Counts) -> String {
    guard let count = counts.byWarning[.migratesButUnusable] else { return "" }
    let verbs = count == 1 ? ("has", "a key", "is") : ("have", "keys", "are")
    return " \(Amounts.grouped(count)) of those \(verbs.0) the format of \(verbs.1) that only the Secure Enclave of "
      + "\(phone) can use, and \(verbs.2) unusable there."
  }

  /// "On old-phone, once it is erased, 18 of them come back, 4 do not."
  private func `return`(_ counts: MigrationFutures.Counts) -> String {
    let start = "On \(phone), once it is erased,"
    let lost = counts.lost == 0 ? "" : ", \(Amounts.grouped(counts.lost)) \(counts.lost == 1 ? "does" : "do") not"
    if counts.expected == 0 {
      switch counts.arrives {
      case 0: return "\(start) none of them comes back."
      case counts.total: return "\(start) \(counts.total == 1 ? "it comes" : "all of them come") back."
      case let count: return "\(start) \(Amounts.grouped(count)) of them \(count == 1 ? "comes" : "come") back\(lost)."
      }
    }
    let checked =
      counts.arrives == 0
      ? "" : " \(Amounts.grouped(counts.arrives)) \(counts.arrives == 1 ? "comes" : "come") back, and"
    let they =
      counts.expected == 1
      ? "is expected back because its class says so" : "are expected back because their classes say so"
    return
      "\(start)\(checked) \(Amounts.grouped(counts.expected))\(checked.isEmpty ? "" : " more") \(they)\(lost); this "
      + "could not be checked."
  }

  private func cause(_ counts: MigrationFutures.Counts) -> String {
    let isClosed = futures.items.contains { $0.reason == .backupNotEncrypted }
    guard isClosed, !futures.hasPassword, protection == nil else { return "" }
    return isOfBackup ? "; the backup has no password" : " in a backup without a password"
  }

  /// Of a device: what the other kind of backup would bring.
  private var other: String {
    func arrives(_ onSameDevice: Bool) -> String {
      let counts = futures.counts(RestoreSetting(hasPassword: !futures.hasPassword, onSameDevice: onSameDevice))
      return counts.comesBack == 0 ? "none" : Amounts.grouped(counts.comesBack)
    }
    let (given, another) = futures.hasPassword ? ("with a", "Without") : ("without a", "With")
    return "This is for a backup \(given) password. \(another) one, \(arrives(false)) reach \(newPhone), and "
      + "\(arrives(true)) come back to \(phone)."
  }

  /// How it is known what comes back to the same device.
  var basis: String {
    guard isOfBackup else {
      return "Checked with keys: a backup was made in memory and opened with \(phone)'s key and with another device's."
    }
    let needing = futures.items.count { $0.reason == .deviceBound || $0.reason == .backupNotEncrypted }
    let lost = futures.items.count { $0.reason?.isLostInThisCopy == true }
    guard needing > 0 else {
      return lost == 0
        ? "Checked: each item was decrypted; none needs a device's hardware key."
        : "Checked: each item was tried; \(Amounts.grouped(lost)) cannot be read in this copy, and none of the others "
          + "needs a device's hardware key."
    }
    guard futures.triedHardware, let hardware else {
      return
        "For \(newPhone) each item was tried. For \(phone), the class decided for the "
        + "\(Amounts.count(needing, "item")) that its hardware key decrypts, because the key is not available."
    }
    return "Checked: each item was tried, for \(phone) with the hardware key of \(hardware)."
  }
}
