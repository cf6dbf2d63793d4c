import Basics
package import KeychainCrypto
import KeychainFormats
package import KeychainRules

extension DumpedItem.Content {
  /// An item of a database, as far as it opened.
  ///
  /// - Parameter opened: What the keys made of it. An access control that asks for nothing is none.
  package init(_ opened: OpenedDatabaseItem) {
    let fault = opened.fault.map { fault in
      // What does not open the key of a class may be another class's key, or another device's.
      let isOtherKey = fault.verdict == .tagMismatch && fault.place == .metadataClassKey
      return DumpFault(isOtherKey ? .noClassKey : Reason(fault.verdict), "\(fault.place.rawValue): \(fault.reason)")
    }
    guard var item = opened.item else {
      self = .shut(
        fault ?? DumpFault(.malformed, "its attributes cannot be decrypted"),
        protection: opened.keyClass.flatMap(ProtectionClass.init(keyClass:)))
      return
    }
    if let constraints = opened.accessControl?.constraints,
      constraints.entries.contains(where: { $0.key.stringValue != "dacl" })
    {
      item[.accessControl] = .dictionary(constraints)
    }
    self =
      opened.isOpen && fault == nil && item.secret != nil ? .open(item) : .attributesOnly(item, fault)
  }
}

extension Reason {
  /// Why an item of a database does not open, as every report names it.
  package init(_ verdict: DatabaseItemVerdict) {
    switch verdict {
    case .open, .malformed, .tamper: self = .malformed
    case .unsupportedVersion: self = .unsupportedVersion
    case .noClassKey: self = .noClassKey
    case .tagMismatch: self = .tagMismatch
    case .accessControl: self = .needsAuthentication
    }
  }
}
