package import KeyhaulKit

extension KeychainDifference.SealedCounts {
  /// "4 of the same are sealed, and stored alike byte for byte."; `nil` where none are.
  package var alikeSentence: String? {
    guard alike > 0 else { return nil }
    let damage = damagedAlike == 0 ? "" : "; \(Amounts.grouped(damagedAlike)) cannot be read in either"
    return "\(Amounts.grouped(alike)) of the same \(alike == 1 ? "is" : "are") encrypted, and stored identically byte "
      + "for byte\(damage)."
  }
}
