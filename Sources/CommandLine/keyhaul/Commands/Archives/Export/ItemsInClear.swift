import ArgumentParser
import KeyhaulKit

/// The document of all items of an archive with their secrets, as it lies beside a copy of the archive in clear.
enum ItemsInClear {
  /// Writes it while the items go by, and says which of them cannot be read.
  static func write(
    _ reader: consuming ArchivedItemReader, of named: NamedArchive, to path: String, _ common: CommonOptions,
    in session: Session
  ) throws {
    let form = try ExportForm(common, output: path, reveals: true)
    let everything = try ItemSelection(.init(kind: nil, attributes: try ItemAttributeOptions.parse([])))
    let source = ExportSource(reader, of: named, everything)
    var items = ExportedItems(of: source.origin, as: form)
    try session.write(to: path) { (portion) throws(CommandFailure) in
      try items.write(from: source, revealingSecrets: true, in: session, to: portion)
    }
    items.warn(in: session)
  }
}
