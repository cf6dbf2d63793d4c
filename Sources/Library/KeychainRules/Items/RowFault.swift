package import KeychainFormats

/// A reason why a row could not be read.
package enum RowFault: Hashable, Sendable {
  /// No key of this device can decrypt the row, or its plaintext is not an item (-26275). The reason contains no value.
  case undecodable(reason: String)
  /// The key of the row's class is not in memory now (-25308).
  case locked(KeyClass)
  /// The keybag's key of the row's class cannot be used at all (-25291).
  case keyUnavailable(KeyClass)

  /// Whether the row itself is damaged, so that unlocking the device does not help.
  package var isPermanent: Bool {
    switch self {
    case .undecodable: true
    case .locked, .keyUnavailable: false
    }
  }
}
