package import KeyhaulKit

/// The items' evidence about a given device key. The raw value is the identifier in machine-readable output.
package enum DeviceKeyVerdict: String, Sendable {
  /// The key decrypts items of every class that needs one.
  case proven
  /// The key decrypts items of some classes that need one, and no items of others.
  case mixed = "divided"
  /// The key decrypts none of the items that need a device key.
  case foreign
  /// No item needs a device key.
  case unproven

  /// Creates the verdict about a device key.
  ///
  /// - Parameters:
  ///   - evidence: The evidence from the items.
  ///   - isForeign: Whether another key was used instead, because the given one decrypts none of the items.
  package init(_ evidence: DeviceKeyEvidence, isForeign: Bool) {
    if isForeign || evidence.isSameDevice == false {
      self = .foreign
    } else if evidence.isMixed {
      self = .mixed
    } else {
      self = evidence.proven.isEmpty ? .unproven : .proven
    }
  }

  /// Whether the key decrypts all items that need a device key; `nil` if no item needs one.
  package var decryptsAllBoundItems: Bool? {
    switch self {
    case .proven: true
    case .mixed, .foreign: false
    case .unproven: nil
    }
  }
}
