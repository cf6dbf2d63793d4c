public import KeyhaulKit

extension ArrivalWarning {
  private static let source =
    "Apple DTS, Developer Forums thread 786223 (only the Secure Enclave can unwrap such a key); a developer's trial, thread "
    + "119315 (on another device the key loads and does not work)"

  /// The explanation of the warning.
  public var explanation: Explanation {
    switch self {
    case .migratesButUnusable:
      Explanation(
        id: rawValue, headline: "the item moves, but its key is unusable on another device",
        rule: "The value has the format in which CryptoKit exports a Secure Enclave key (dataRepresentation), wrapped "
          + "so that only the source device's chip can use it. The format does not affect the protection class, so the "
          + "item moves like any password.",
        effect: "The item is on the new device, but signing or decrypting with the key fails there. The app has to "
          + "notice this and make a new key.",
        action: "Before the source device is erased, make sure that you can register a new key or sign in again. "
          + "Developers: keep such a key in a this-device-only class, so that the app notices its absence.",
        source: Self.source)
    case .useNotKnown:
      Explanation(
        id: rawValue, headline: "the item is restored, but it is not known whether its key still works",
        rule: "The value has the format in which CryptoKit exports a Secure Enclave key. The target is the source "
          + "device, or is not proven to be another one. No published source says whether the chip accepts such a key "
          + "after an erase and a restore.",
        effect: "The item is restored. On any device other than the one that made the key, the key is unusable.",
        action: "Before the device is erased, make sure that you can register a new key or sign in again.",
        source: Self.source)
    }
  }

  /// The text after a count of such items, such as "unusable there".
  package var countSuffix: String {
    switch self {
    case .migratesButUnusable: "unusable there"
    case .useNotKnown: "whose keys may not work there"
    }
  }

  /// Returns each count with its text: "1 unusable there".
  package static func countTexts(_ counts: [ArrivalWarning: Int]) -> [String] {
    allCases.compactMap { warning in counts[warning].map { "\(HumanReadable.grouped($0)) \(warning.countSuffix)" } }
  }
}

extension Explanation {
  /// Returns the last part of a sentence about arriving items: ", of them 1 unusable there". Empty if there are no
  /// warnings.
  package static func warningClause(for counts: [ArrivalWarning: Int]) -> String {
    let parts = ArrivalWarning.countTexts(counts)
    return parts.isEmpty ? "" : ", of them \(HumanReadable.list(parts))"
  }
}
