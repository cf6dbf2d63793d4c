import ArchivedKeychain
import BackupArchive
import KeychainFormats

extension InspectionPage {
  /// The sentence that matters: where this keychain can go.
  var verdict: String {
    if facts.hiddenKeychain != nil { return "The keychain in this backup cannot be read: what it holds is not known." }
    guard facts.hasKeychain else { return "This backup holds no keychain." }
    return reach + (counts.damaged == 0 ? "." : "; \(Amounts.grouped(counts.damaged)) cannot be read in this copy.")
  }

  /// Whether nothing of it opens anywhere.
  var isKeybagUnusable: Bool { facts.findings.contains(where: \.leavesNoKeybag) }

  /// Whether it says that it is a decrypted copy, which no restore takes.
  var isCopyInClear: Bool { facts.findings.contains(.decryptedCopy) }

  private var reach: String {
    if let unbound = facts.unbound {
      return unbound.isRefused
        ? "No restore takes this keychain: \(unbound.factInWords). So \(unbound.meaning)"
        : "No device wrote this keychain so: \(unbound.factInWords). So \(unbound.meaning)"
    }
    if isCopyInClear { return "No restore takes this decrypted copy: use the backup that it was made of" }
    if isKeybagUnusable {
      return "The keybag of this backup cannot be used: nothing in its keychain opens, on any device"
    }
    if counts.nowhere > 0, counts.nowhere + counts.damaged == counts.total {
      return "This keychain holds secrets that nothing names, as iOS 4 stored them, and can go to no device"
    }
    guard facts.isEncrypted else {
      return "This keychain can go only back to \(maker), because the backup has no password"
    }
    guard facts.items != nil else {
      return
        "This keychain can go to any device with the password, its items of \u{201C}this device\u{201D} only back to "
        + maker
    }
    let total = Amounts.grouped(counts.total)
    switch (counts.anyDevice, counts.sameDevice) {
    case (0, 0): return counts.total == 0 ? "The keychain in this backup is empty" : "Nothing in this keychain opens"
    case (0, _): return "This keychain can go only back to \(maker): all that opens is of this device only"
    case (_, 0): return "This keychain can go to any device with the password"
    case (_, let bound):
      return "This keychain can go to any device with the password; \(Amounts.grouped(bound)) of \(total) items "
        + "\(bound == 1 ? "goes" : "go") only back to \(maker)"
    }
  }
}
