public import Basics
import KeychainCrypto
import KeychainFormats
package import KeychainRules

extension KeyhaulError.Domain {
  /// Errors of a device's keychain database. The codes have the names that Apple's `SecBase.h` gives its result codes.
  public static let keychainStore = Self("keychain-store")
}

extension KeyhaulError.Code {
  private static func store(
    _ rawValue: String, _ category: ErrorCategory, _ summary: String, advice: Remedy
  ) -> Self {
    Self(rawValue, of: .keychainStore, category, summary, advice: advice)
  }

  private static func rule(_ code: KeychainRuleError.Code) -> Self {
    store(code.rawValue, code.meaning.category, code.meaning.summary, advice: code.meaning.remedy)
  }

  /// The keychain already has an item with the same primary key.
  public static let duplicateItem = store(
    "duplicateItem", .failed, "the item already exists", advice: "update the existing item, or delete it first")
  /// No item matches the search.
  public static let itemNotFound = store(
    "itemNotFound", .notFound, "no item matches", advice: "search with fewer attributes")
  /// The key of the item's class is not in memory because the device is locked.
  public static let interactionNotAllowed = store(
    "interactionNotAllowed", .locked, "the item's key is not in memory", advice: "unlock the device")
  /// The item's class requires a passcode, and the device has none.
  public static let authFailed = store(
    "authFailed", .refused, "the device has no passcode", advice: "set a passcode, or choose another protection")
  /// None of the device's keys can decrypt the item, or the item is damaged.
  public static let decode = rule(.decode)
  /// The search or the item is not valid.
  public static let parameter = rule(.parameter)
  /// The kind of item has no such attribute.
  public static let noSuchAttribute = rule(.noSuchAttribute)
  /// The file cannot be read or written.
  public static let storeIO = store(
    "io", .failed, "the keychain database cannot be read or written",
    advice: "check the disk and the permissions of the device's folder")
  /// There is no space left. The transaction was rolled back.
  public static let diskFull = store(
    "diskFull", .failed, "the disk is full", advice: "free some space; nothing was changed")
  /// There are no class keys, or the database cannot be opened.
  public static let notAvailable = rule(.notAvailable)
  /// The keychain was used after `close()`.
  public static let closed = store("closed", .failed, "the keychain is closed", advice: "open the device again")
  /// The caller stopped a change of many items. The transaction was rolled back.
  public static let cancelled = store(
    "cancelled", .failed, "the change was stopped", advice: "run it again and let it finish")
  /// Another process has locked the database.
  public static let storeBusy = store(
    "busy", .busy, "the keychain database is in use", advice: "wait until the other process has finished")
  /// The file is not a keychain database, or contains definitions that a keychain database does not have.
  public static let storeDamaged = store(
    "damaged", .damaged, "the keychain database is damaged", advice: "restore the device from a backup")

  /// All codes of the domain, for tests.
  package static let storeCodes: [Self] = [
    .duplicateItem, .itemNotFound, .interactionNotAllowed, .authFailed, .decode, .parameter, .noSuchAttribute,
    .storeIO, .diskFull, .notAvailable, .closed, .cancelled, .storeBusy, .storeDamaged,
  ]
}

extension KeyhaulError {
  init(dataProtectionError error: DataProtectionError) { self.init(.notAvailable, error.description) }

  /// Creates the error for an item that cannot be encrypted or decrypted.
  ///
  /// Source: Apple `SecItemServer.c`, `SecKeybagSupport.c` (key store results to `OSStatus`).
  init(itemCryptoError error: ItemCryptoError) {
    switch error.fault {
    case .locked: self.init(.interactionNotAllowed, error.reason)
    case .noClassKey where error.keyClass == .whenPasscodeSetThisDeviceOnly:
      self.init(.authFailed, "the item's class exists only while a passcode is set")
    case .malformed: self.init(.parameter, error.reason)
    case .noClassKey, .deviceBound, .classKeyDamaged, .keyUnwrapFailed, .tagMismatch, .unsupportedVersion, .failed:
      self.init(.notAvailable, error.reason)
    }
  }

  /// Creates the error for a search or a change with a row that cannot be decrypted.
  package init(_ fault: RowFault) {
    switch fault {
    case .undecodable(let reason): self.init(.decode, reason)
    case .locked(let keyClass):
      self.init(.interactionNotAllowed, "the key of class \(keyClass.rawValue) is not in memory")
    case .keyUnavailable(let keyClass): self.init(.notAvailable, "there is no key of class \(keyClass.rawValue)")
    }
  }
}

extension KeyhaulError {
  /// Creates the error for an item or value that violates a rule.
  package init(rule error: KeychainRuleError) {
    let code: Code =
      switch error.code {
      case .parameter: .parameter
      case .noSuchAttribute: .noSuchAttribute
      case .decode: .decode
      case .notAvailable: .notAvailable
      }
    self.init(code, error.reason)
  }
}

/// Calls a rule and converts its error.
func translatingRuleErrors<Value>(_ body: @autoclosure () throws(KeychainRuleError) -> Value) throws(KeyhaulError)
  -> Value
{
  try converting(KeyhaulError.init(rule:), body)
}
