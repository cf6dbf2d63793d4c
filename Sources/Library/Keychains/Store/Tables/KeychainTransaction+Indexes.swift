import Basics
import GRDB
import KeychainFormats

extension KeychainTransaction {
  /// Below so many new rows of a table its indexes cost next to nothing.
  private static let fewestRows = 2_000
  /// How much of the file a change of very many items may hold in memory. Each item changes a page of every index that stays
  /// meanwhile, in no order, and pages that are not held go to the log and come back. A restore of 100,000 items takes as long
  /// with these 5 MB as with 8.
  static let bulkCacheKilobytes = 5 << 10
  /// How much of it is held for each new row, in bytes, where that is more. Most of a million rows' pages would come and go:
  /// a restore of them took 71 s of processors with these and 81 with 5 MB, in the same minutes and beside other work.
  private static let cacheByteCount = 48

  /// Does work that adds a row of each of these kinds. A table that becomes several times as large by it is without its
  /// indexes meanwhile: made of all rows at once they take half of the time that row after row takes. Rows are found by
  /// their number and by their primary key all the same.
  ///
  /// - Parameter translating: Turns an error of the database itself into one of the closure's. The transaction then has to
  ///   be taken back, as for every error.
  func adding<Failure: Error>(
    _ kinds: some Sequence<ItemKind>, translating: (KeychainStoreError) -> Failure, _ body: () throws(Failure) -> Void
  ) throws(Failure) {
    func changing(_ change: () throws(KeychainStoreError) -> Void) throws(Failure) {
      do throws(KeychainStoreError) { try change() } catch { throw translating(error) }
    }
    let counts = Dictionary(kinds.map { ($0, 1) }, uniquingKeysWith: +)
    let kilobytes = counts.values.reduce(0, +) * Self.cacheByteCount / 1024
    var taken: [KeychainSchema.Object] = []
    try changing { () throws(KeychainStoreError) in
      if kilobytes > Self.bulkCacheKilobytes { try database.run("PRAGMA cache_size = -\(kilobytes)") }
      for kind in ItemKind.allCases where try growsByFar(kind, by: counts[kind] ?? 0) {
        for index in KeychainSchema.indexes(of: kind) {
          try database.run("DROP INDEX \(index.name)")
          taken.append(index)
        }
      }
    }
    try body()
    try changing { () throws(KeychainStoreError) in
      for index in taken {
        try requireGoingOn()
        try database.run(index.sql)
      }
      try requireGoingOn()
    }
  }

  private func growsByFar(_ kind: ItemKind, by count: Int) throws(KeychainStoreError) -> Bool {
    guard count >= Self.fewestRows else { return false }
    return try self.count(kind, RowCondition()) <= count / 2
  }
}
