import KeychainFormats

/// The interpretation of the class number in an item's blob.
package enum ClassNumbering: Sendable, Hashable {
  /// The complete number. In a backup, a number with upper bits is another, unknown class.
  case exact
  /// The number without the key generation that a device's own database stores in the upper bits.
  case withGenerations

  func keyClass(from stored: KeyClass) -> KeyClass {
    switch self {
    case .exact: stored
    case .withGenerations: stored.withoutGeneration
    }
  }
}
