public import KeychainFormats

/// Why a row could not be opened.
public enum RowFault: Hashable, Sendable {
  /// No key of this device will ever open it, or what it opens to is no item (-26275). The reason holds no value.
  case undecodable(reason: String)
  /// The key of its class is not in memory at this moment (-25308).
  case locked(KeyClass)
  /// The keybag's key of its class cannot be used at all (-25291).
  case keyUnavailable(KeyClass)

  /// Whether the row itself is at fault, so that no unlocking will help.
  public var isPermanent: Bool {
    switch self {
    case .undecodable: true
    case .locked, .keyUnavailable: false
    }
  }
}
