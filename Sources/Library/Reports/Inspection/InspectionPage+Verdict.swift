import KeyhaulKit

extension InspectionPage {
  /// The sentence that matters: where this keychain can go.
  var verdict: String {
    if facts.hiddenKeychain != nil {
      return "The keychain in this backup cannot be read, so its contents are not known."
    }
    guard facts.hasKeychain else { return "This backup contains no keychain." }
    return reach + (counts.damaged == 0 ? "." : "; \(Amounts.grouped(counts.damaged)) cannot be read in this copy.")
  }

  /// Whether nothing of it opens anywhere.
  var isKeybagUnusable: Bool { facts.findings.contains(where: \.leavesNoKeybag) }

  /// Whether it says that it is a decrypted copy, which no restore takes.
  var isCopyInClear: Bool { facts.findings.contains(.decryptedCopy) }

  private var reach: String {
    if let unbound = facts.unbound {
      return unbound.isRefused
        ? "No device accepts this keychain: \(unbound.factInWords). As a result, \(unbound.meaning)"
        : "No device writes such a keychain: \(unbound.factInWords). As a result, \(unbound.meaning)"
    }
    if isCopyInClear { return "This decrypted copy cannot be restored: use the backup that it was made from" }
    if isKeybagUnusable {
      return "The keybag of this backup is unusable: no keychain item can be decrypted, on any device"
    }
    if counts.nowhere > 0, counts.nowhere + counts.damaged == counts.total {
      return "This keychain contains secrets without names, as iOS 4 stored them, and cannot be restored to any device"
    }
    guard facts.isEncrypted else {
      return "This keychain can go only back to \(maker), because the backup has no password"
    }
    guard facts.items != nil else {
      return
        "This keychain can go to any device with the password; its this-device-only items can go only back to "
        + maker
    }
    let total = Amounts.grouped(counts.total)
    switch (counts.anyDevice, counts.sameDevice) {
    case (0, 0):
      return counts.total == 0
        ? "The keychain in this backup is empty"
        : "No item in this keychain can be decrypted"
    case (0, _):
      return "This keychain can go only back to \(maker): all items that can be decrypted are this-device-only"
    case (_, 0): return "This keychain can go to any device with the password"
    case (_, let bound):
      return "This keychain can go to any device with the password; \(Amounts.grouped(bound)) of \(total) items "
        + "\(bound == 1 ? "goes" : "go") only back to \(maker)"
    }
  }
}
