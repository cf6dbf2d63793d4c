import ArgumentParser
import KeyhaulKit
import Reports

/// The document of all items with their secrets, which is written next to a decrypted copy of a backup.
enum DecryptedItemsDocument {
  /// Writes the items one by one, and warns about items that cannot be read.
  static func write(
    _ reader: BackupItemReader, of loaded: LoadedBackup, to path: String, _ common: CommonOptions,
    in session: Session
  ) throws {
    let format = try ExportFormat.chosen(common, output: path, reveals: true)
    let everything = try ItemSelection(.init(kind: nil, attributes: try ItemAttributeOptions.parse([])))
    let source = ExportSource(reader, of: loaded, everything)
    var items = ExportedItems(of: source.origin, as: format)
    try session.write(to: path) { (write) throws(CommandError) in
      try items.write(from: source, revealingSecrets: true, in: session, to: write)
    }
    items.warn(in: session)
  }
}
