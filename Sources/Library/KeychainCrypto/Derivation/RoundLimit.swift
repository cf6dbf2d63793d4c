import Basics
internal import KeychainFormats

/// How much work a file may ask for.
public enum RoundLimit {
  /// The most rounds accepted unless the caller says otherwise, ITER and DPIC together. Real backups ask for
  /// 10,010,000.
  public static let standard = 20_000_000
  /// How many times the usual count of its form a count may be without being worth a question.
  public static let usualMultiple = 5

  /// Refuses what is over the limit, and a count of no rounds, before any work is done.
  static func check(_ counts: [UInt32], acceptingAtMost limit: Int) throws(DataProtectionError) {
    guard !counts.contains(0) else {
      throw DataProtectionError(.damagedKeybag, "it asks for a derivation with 0 iterations")
    }
    let total = counts.reduce(UInt64(0)) { $0 + UInt64($1) }
    guard total <= UInt64(max(0, limit)) else {
      throw DataProtectionError(
        .roundsOverLimit,
        "it asks for \(Amounts.grouped(total)) iterations, over the limit of \(Amounts.grouped(limit)); a real backup "
          + "asks for 10,010,000"
      )
    }
  }
}
