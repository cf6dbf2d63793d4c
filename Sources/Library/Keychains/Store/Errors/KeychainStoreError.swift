public import Basics
import KeychainFormats
import KeychainRules

/// Why the keychain database did not do what it was asked.
public struct KeychainStoreError: ExplainedError, Equatable {
  /// What went wrong, with the name that Apple's `SecBase.h` gives its result code.
  public enum Code: String, Sendable, CaseIterable {
    /// An item with the same primary key is there already.
    case duplicateItem
    /// No row matches what was asked for.
    case itemNotFound
    /// The key of the item's class is not in memory: the device is locked.
    case interactionNotAllowed
    /// A class that needs a passcode on a device that has none.
    case authFailed
    /// The item cannot be decrypted or read with any key this device has.
    case decode
    /// A question or an item that makes no sense.
    case parameter
    /// The kind of item has no such attribute.
    case noSuchAttribute
    /// The file could not be read or written.
    case io
    /// There is no space left; the transaction was taken back.
    case diskFull
    /// No class key at all, or the database cannot be opened.
    case notAvailable
    /// `close()` was called before.
    case closed
    /// Whoever waits for a change of many items no longer wants it; the transaction was taken back.
    case cancelled
    /// Another process holds the database.
    case busy
    /// The file is not a keychain database, or holds what does not belong there.
    case damaged
  }

  /// What went wrong, for a program to switch on.
  public let code: Code
  /// The fact found; it quotes no value of an item.
  public let reason: String

  /// Creates an error of a code and a reason.
  public init(_ code: Code, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  /// One sentence and one advice for each code.
  public var meaning: ErrorMeaning {
    switch code {
    case .duplicateItem:
      .init(.failed, "the item exists already", advice: "update the existing item, or delete it first")
    case .itemNotFound: .init(.notFound, "no item matches", advice: "search with fewer attributes")
    case .interactionNotAllowed: .init(.locked, "the item's key is not in memory", advice: "unlock the device")
    case .authFailed:
      .init(.refused, "the device has no passcode", advice: "set a passcode, or choose another protection")
    case .decode: KeychainRuleError.Code.decode.meaning
    case .parameter: KeychainRuleError.Code.parameter.meaning
    case .noSuchAttribute: KeychainRuleError.Code.noSuchAttribute.meaning
    case .io:
      .init(
        .failed, "the keychain database cannot be read or written",
        advice: "check the disk and the permissions of the device's folder")
    case .diskFull: .init(.failed, "the disk is full", advice: "free some space; nothing was changed")
    case .notAvailable: KeychainRuleError.Code.notAvailable.meaning
    case .closed: .init(.failed, "the keychain is closed", advice: "open the device again")
    case .cancelled: .init(.failed, "the change was stopped", advice: "run it again and let it finish")
    case .busy: .init(.busy, "the keychain database is in use", advice: "wait until the other process has finished")
    case .damaged: .init(.damaged, "the keychain database is damaged", advice: "restore the device from a backup")
    }
  }
}
