import KeychainFormats
public import KeychainRules

extension ArrivalWarning {
  private static let source =
    "Apple DTS, Developer Forums thread 786223 (only the Secure Enclave can unwrap such a key); a developer's trial, thread "
    + "119315 (on another device the key loads and does not work)"

  /// What the warning means.
  public var explanation: Explanation {
    switch self {
    case .migratesButUnusable:
      Explanation(
        id: rawValue, headline: "the item arrives, and its key is of no use on another device",
        rule: "The value has the form in which CryptoKit gives out a key of the Secure Enclave (dataRepresentation): "
          + "wrapped so that only the chip of the device that made it can use it. It says nothing of the protection "
          + "class, so that the item moves like any password.",
        effect: "The item is on the new device, and what the key signed or opened there fails. Whether the app notices "
          + "and makes a new key is the app's affair.",
        action: "Have a way to register a new key, or to sign in again, before the old device is erased. Developers: "
          + "keep such a key in a class of this device only, so that its absence is noticed.",
        source: Self.source)
    case .useNotKnown:
      Explanation(
        id: rawValue, headline: "the item arrives, and whether its key still works there is not known",
        rule: "The value has the form in which CryptoKit gives out a key of the Secure Enclave, and the target is the "
          + "device that made the backup, or is not proven to be another one. No published source says whether the chip "
          + "takes such a key back after an erase and a restore.",
        effect: "The item is there. On another device than the one that made the key, the key is of no use.",
        action: "Have a way to register a new key, or to sign in again, before the device is erased.",
        source: Self.source)
    }
  }

  /// What a count of such items is followed by: "1 of no use there".
  package var countedWords: String {
    switch self {
    case .migratesButUnusable: "of no use there"
    case .useNotKnown: "whose use there is not known"
    }
  }

  /// Each count with its words: "1 of no use there".
  static func counted(_ counts: [ArrivalWarning: Int]) -> [String] {
    allCases.compactMap { warning in counts[warning].map { "\(Amounts.grouped($0)) \(warning.countedWords)" } }
  }
}

extension Explanation {
  /// ", of them 1 of no use there": what a sentence about arriving items adds; empty where none is warned of.
  package static func warned(_ counts: [ArrivalWarning: Int]) -> String {
    let parts = ArrivalWarning.counted(counts)
    return parts.isEmpty ? "" : ", of them \(Amounts.list(parts))"
  }
}
