import KeyhaulKit
import Reports

/// The items that `--only` lists by their indexes in the backup: `{"indexes": [0, 3]}`. Only these are restored.
struct RestoreSelection {
  let path: String
  let indexes: Set<Int>

  /// The maximum size of the file in bytes, more than a list of all items in any backup needs.
  static let maximumByteCount = 16 << 20

  init(_ path: String, in session: Session) throws(CommandError) {
    let bytes = try InputFile.read(path, atMost: Self.maximumByteCount, what: "the list of items", in: session)
    let path = InputFile.name(path)
    self.path = path
    guard let indexes = Self.indexes(in: bytes) else {
      throw CommandError(
        .refused, "\(path) is not a list of items", why: "it must be an object with the single member \"indexes\"",
        try: #"{"indexes": [0, 3]} with item indexes from plan --json"#)
    }
    self.indexes = Set(indexes)
  }

  private static func indexes(in bytes: [UInt8]) -> [Int]? {
    guard let document = try? JSONValue(parsing: bytes), document.fields?.map(\.0) == ["indexes"],
      let elements = document["indexes"]?.arrayValue
    else { return nil }
    let indexes = elements.compactMap { $0.integerValue.flatMap { Int(exactly: $0) } }
    return indexes.count == elements.count ? indexes : nil
  }

  /// Rejects indexes that the backup does not have, and warns about selected items that will not be restored.
  ///
  /// - Parameters:
  ///   - plan: The plan for all items, selected or not.
  ///   - loaded: The backup, for its name in errors.
  ///   - session: The session that shows the warning; `nil` if the warning was already shown.
  func check(against plan: MigrationPlan, _ loaded: LoadedBackup, in session: Session?) throws(CommandError) {
    let plannedIndexes = Set(plan.decisions.map(\.index))
    if let unknownIndex = indexes.subtracting(plannedIndexes).min() {
      throw .usage(
        "\(path) names item \(unknownIndex)",
        why: "\(loaded.name) has \(HumanReadable.count(plannedIndexes.count, "item")), counted from 0",
        try: "plan --json shows the index of each item")
    }
    let notRestored = plan.decisions.filter { indexes.contains($0.index) && $0.outcome.change == nil }
    guard let first = notRestored.first, let reason = first.outcome.reason else { return }
    session?.warn(
      "\(HumanReadable.count(notRestored.count, "item")) of \(path) will not be restored",
      why: "the first is item \(first.index): \(reason.rawValue)", try: "keyhaul explain \(reason.rawValue)")
  }
}
