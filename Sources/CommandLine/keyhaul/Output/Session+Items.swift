import KeyhaulKit
import Reports

extension Session {
  /// Gives items as the one document of `--json`, written while it is made; where fields were chosen, the rows alone.
  ///
  /// - Parameters:
  ///   - outcome: What the verb did besides.
  ///   - path: A file; standard output for "-" and for none.
  func answer(
    _ document: ItemDocument, of rows: [ItemRow], _ outcome: [(String, JSONValue)] = [], to path: String? = nil
  ) throws(CommandFailure) {
    let entries = rows.lazy.map { ItemDocument.Entry($0, index: document.indexes[$0.reference]) }
    try write(to: path) { (portion) throws(CommandFailure) in
      guard let chosen else {
        var stream = document.stream()
        for entry in entries { try stream.append(document.object(entry), to: portion) }
        return try stream.end(outcome, to: portion)
      }
      try JSONValue.array(entries.map { chosen.row(document.object($0)) }).forEachPortion(portion)
    }
  }
}
