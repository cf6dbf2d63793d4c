public import KeyhaulKit

extension ArrivalWarning {
  private static let source =
    "Apple DTS, Developer Forums thread 786223 (only the Secure Enclave can unwrap such a key); a developer's trial, thread "
    + "119315 (on another device the key loads and does not work)"

  /// What the warning means.
  public var explanation: Explanation {
    switch self {
    case .migratesButUnusable:
      Explanation(
        id: rawValue, headline: "the item arrives, but its key is unusable on another device",
        rule: "The value has the format in which CryptoKit exports a Secure Enclave key (dataRepresentation), wrapped "
          + "so that only the source device's chip can use it. The format does not affect the protection class, so the "
          + "item moves like any password.",
        effect: "The item is on the new device, but signing or decrypting with the key fails there. The app has to "
          + "notice this and make a new key.",
        action: "Before the old device is erased, make sure that you can register a new key or sign in again. "
          + "Developers: keep such a key in a this-device-only class, so that the app notices its absence.",
        source: Self.source)
    case .useNotKnown:
      Explanation(
        id: rawValue, headline: "the item arrives, but it is not known whether its key still works",
        rule: "The value has the format in which CryptoKit exports a Secure Enclave key. The target is the source "
          + "device, or is not proven to be another one. No published source says whether the chip accepts such a key "
          + "after an erase and a restore.",
        effect: "The item is there. On any device other than the one that made the key, the key is unusable.",
        action: "Before the device is erased, make sure that you can register a new key or sign in again.",
        source: Self.source)
    }
  }

  /// What a count of such items is followed by: "1 of no use there".
  package var countedWords: String {
    switch self {
    case .migratesButUnusable: "unusable there"
    case .useNotKnown: "whose keys may not work there"
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
