import Basics
package import KeychainCrypto
import KeychainFormats
package import KeychainRules

extension DumpedItem.Content {
  /// Creates the content from a decrypted row of a database.
  ///
  /// - Parameter decrypted: The decrypted row. An access control without constraints is ignored.
  package init(_ decrypted: DecryptedDatabaseItem) {
    let fault = decrypted.fault.map { fault in
      // If the class key does not unwrap the key of the attributes, it may be the key of another class or device.
      let isWrongKey = fault.verdict == .tagMismatch && fault.step == .metadataClassKey
      return DumpFault(isWrongKey ? .noClassKey : Reason(fault.verdict), "\(fault.step.rawValue): \(fault.reason)")
    }
    guard var item = decrypted.item else {
      self = .undecryptable(
        fault ?? DumpFault(.malformed, "its attributes cannot be decrypted"),
        protection: decrypted.keyClass.flatMap(ProtectionClass.init(keyClass:)))
      return
    }
    if let constraints = decrypted.accessControl?.constraints, AccessOperation.hasEntry(in: constraints) {
      item[.accessControl] = .dictionary(constraints)
    }
    self =
      decrypted.isOpen && fault == nil && item.secret != nil ? .open(item) : .attributesOnly(item, fault)
  }
}

extension Reason {
  /// Creates the reason that reports give for a row that cannot be decrypted.
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
