public import Basics
public import KeychainFormats
public import KeychainRules

/// Why an item of a backup could not be added, changed or taken out. Nothing was changed.
public struct ItemEditError: ExplainedError {
  /// Why, for a program to switch on.
  public enum Code: Sendable, Hashable {
    /// An item with the same primary key is in the backup.
    case duplicate
    /// No backup holds such an item, for this reason.
    case neverInBackup(Reason)
    /// The key of the item's class is not available.
    case classKeyMissing(KeyClass)
    /// The key of the item's class went through a hardware key, and no item shows that it is the right one.
    case hardwareUnproven(KeyClass)
    /// What was asked for is no item.
    case notAnItem
    /// The keychain file holds what would be lost.
    case unknownContent
    /// The cryptography or the writing of the file failed.
    case failed
  }

  /// Why, for a program to switch on.
  public let code: Code
  /// The fact found; it quotes no value of an item.
  public let reason: String

  init(_ code: Code, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  init(_ error: KeychainRuleError) { self.init(error.code == .notAvailable ? .failed : .notAnItem, error.reason) }

  /// One sentence and one advice for each code.
  public var meaning: ErrorMeaning {
    switch code {
    case .duplicate:
      .init(.failed, "the backup already has this item", advice: "another name, or change the existing item")
    case .neverInBackup:
      .init(.refused, "no backup contains such an item", advice: "another protection class, or add it on a device")
    case .classKeyMissing:
      .init(.refused, "the item cannot be encrypted", advice: "the hardware key of the source device")
    case .hardwareUnproven:
      .init(
        .refused, "the item cannot be encrypted", advice: "a protection class that may leave the device")
    case .notAnItem:
      .init(.failed, "the keychain does not accept this", advice: "see the attributes of this kind of item")
    case .unknownContent:
      .init(.refused, "the backup's keychain was not rewritten", advice: "another copy of the backup")
    case .failed: .init(.failed, "the keychain cannot be written", advice: "run it again")
    }
  }
}
