import Basics

/// The limits on the iterations that a file may require.
public enum IterationLimit {
  /// The default maximum number of iterations to accept, for both steps together. Backups of iOS 10.2 and later require
  /// 10,010,000: 10,000,000 (`DPIC`) and 10,000 (`ITER`).
  public static let standard = 20_000_000

  /// Checks the number of iterations of each step, before any work is done.
  ///
  /// - Throws: `.damagedKeybag` if a step has no iterations; `.roundsOverLimit` if all steps together exceed the limit.
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
