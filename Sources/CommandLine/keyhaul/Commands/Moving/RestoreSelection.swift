import KeyhaulKit

/// The items that a restore is to bring, as `--only` names them: `{"indexes": [0, 3]}`, by their places in the archive.
struct RestoreSelection {
  let path: String
  let indexes: Set<Int>

  /// More than a list of all items of any backup takes, in bytes.
  static let maximumByteCount = 16 << 20

  init(_ path: String, in session: Session) throws(CommandFailure) {
    let bytes = try InputFile.read(path, atMost: Self.maximumByteCount, what: "the list of items", in: session)
    let path = InputFile.name(path)
    self.path = path
    guard let indexes = Self.indexes(in: bytes) else {
      throw CommandFailure(
        .refused, "\(path) is not a list of items", why: "it must be an object with the single member \"indexes\"",
        try: #"{"indexes": [0, 3]}, the item indexes from plan --json"#)
    }
    self.indexes = Set(indexes)
  }

  private static func indexes(in bytes: [UInt8]) -> [Int]? {
    guard let list = try? JSONValue(parsing: bytes), list.fields?.map(\.0) == ["indexes"],
      let elements = list["indexes"]?.arrayValue
    else { return nil }
    let indexes = elements.compactMap { $0.integerValue.flatMap { Int(exactly: $0) } }
    return indexes.count == elements.count ? indexes : nil
  }

  /// Refuses places that the archive does not have, and says which of the items do not arrive anyway.
  ///
  /// - Parameter session: Where that is said; `nil` where it was said before.
  func check(against plan: MigrationPlan, _ named: NamedArchive, in session: Session?) throws(CommandFailure) {
    let known = Set(plan.decisions.map(\.index))
    if let unknownIndex = indexes.subtracting(known).min() {
      throw .usage(
        "\(path) names item \(unknownIndex)",
        why: "\(named.name) has \(Amounts.count(known.count, "item")), counted from 0",
        try: "plan --json shows the index of each item")
    }
    let staying = plan.decisions.filter { indexes.contains($0.index) && $0.outcome.change == nil }
    guard let first = staying.first, let reason = first.outcome.reason else { return }
    session?.warn(
      "\(Amounts.count(staying.count, "item")) of \(path) will not arrive",
      why: "the first is item \(first.index): \(reason.rawValue)", try: "keyhaul explain \(reason.rawValue)")
  }
}
