package import Basics
package import KeychainFormats

/// An error in decrypting or encrypting one item, which does not affect other items.
package struct ItemCryptoError: ExplainedError, Equatable {
  /// The kind of error.
  package let fault: ItemFault
  /// The class of the item, or `nil` if it could not be read.
  package let keyClass: KeyClass?

  /// Creates an error for one item.
  package init(_ fault: ItemFault, keyClass: KeyClass? = nil) {
    self.fault = fault
    self.keyClass = keyClass
  }

  /// A description and a suggestion for each kind of error.
  package var meaning: ErrorMeaning {
    let otherCopy: Remedy = "another copy; the other items are not affected"
    return switch fault {
    case .locked:
      .init(.locked, "the item is locked", advice: "unlock first, with the passcode or the backup's password")
    case .deviceBound:
      .init(
        .failed, "the item can be decrypted only on the source device",
        advice: "restore to the source device")
    case .noClassKey, .classKeyDamaged: .init(.damaged, "there is no key for the item", advice: otherCopy)
    case .keyUnwrapFailed, .tagMismatch: .init(.damaged, "the item is damaged", advice: otherCopy)
    case .unsupportedVersion:
      .init(
        .refused, "the item's version is not supported", advice: "a newer version of Keyhaul, which may read it")
    case .malformed(let error): error.meaning
    case .failed(let error): error.meaning
    }
  }

  /// The reason, with the class of the key but without a value of the item.
  package var reason: String {
    let name = keyClass.map { "class \($0.rawValue)" } ?? "its class"
    return switch fault {
    case .locked: "the key of \(name) is not in memory"
    case .deviceBound: "the key of \(name) is wrapped with the device key"
    case .noClassKey: "the keybag has no key of \(name)"
    case .classKeyDamaged: "the keybag's key of \(name) cannot be unwrapped"
    case .keyUnwrapFailed: "the key of \(name) does not unwrap the item's key"
    case .tagMismatch: "its authentication tag does not match its bytes"
    case .unsupportedVersion(let version): "its version is \(version)"
    case .malformed(let error): error.reason
    case .failed(let error): error.reason
    }
  }
}
