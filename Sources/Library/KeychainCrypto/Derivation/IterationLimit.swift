import Basics

/// The limits on the iterations that a file may require.
public enum IterationLimit {
  /// The default for the most iterations to accept, `ITER` and `DPIC` together. Real backups require 10,010,000.
  public static let standard = 20_000_000
  /// The multiple of the usual number of iterations up to which the user is not asked.
  package static let usualMultiple = 5

  /// Throws if there are more iterations than the limit, or none, before any work is done.
  static func check(_ counts: [UInt32], acceptingAtMost limit: Int) throws(DataProtectionError) {
    guard !counts.contains(0) else {
      throw DataProtectionError(.damagedKeybag, "it asks for a derivation with 0 iterations")
    }
    let total = counts.reduce(UInt64(0)) { $0 + UInt64($1) }
    guard total <= UInt64(max(0, limit)) else {
      throw DataProtectionError(
        .roundsOverLimit,
        "it asks for \(HumanReadable.grouped(total)) iterations, over the limit of \(HumanReadable.grouped(limit)); a real backup "
          + "asks for 10,010,000"
      )
    }
  }
}
