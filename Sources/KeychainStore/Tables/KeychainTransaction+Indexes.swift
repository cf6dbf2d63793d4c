import GRDB
import KeychainFormats

extension KeychainTransaction {
  /// Below so many new rows of a table its indexes cost next to nothing.
  private static let fewestRows = 2_000

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
    var taken: [KeychainSchema.Object] = []
    try changing { () throws(KeychainStoreError) in
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
