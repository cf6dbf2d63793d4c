import Basics

/// Writes a keychain file in chunks, so that neither its entries nor the file itself have to be in memory.
package struct KeychainFileWriter {
  private typealias Key = KeychainBackupFile.Key
  private static let chunkByteCount = 1 << 18

  private let file: KeychainBackupFile

  /// Creates a writer.
  ///
  /// - Parameter file: The file. Its entries may have only offsets.
  /// - Throws: `.overLimit` for more entries than `KeychainBackupFile.maximumEntryCount`.
  package init(_ file: KeychainBackupFile) throws(FormatError) {
    let maximum = KeychainBackupFile.maximumEntryCount
    guard file.entries.count <= maximum else {
      throw FormatError(
        .keychainFile, .overLimit, "it has \(file.entries.count) items; at most \(maximum) are accepted")
    }
    self.file = file
  }

  /// Writes the complete file.
  ///
  /// - Parameters:
  ///   - load: Returns an entry with its bytes. Called once for each entry, kind by kind, in the order of the file.
  ///   - sink: Receives the file's bytes in order. They are valid only during the call.
  /// - Throws: The error of `load` or `sink`.
  package func write<Failure: Error>(
    reading load: (KeychainBackupFile.Entry) throws(Failure) -> KeychainBackupFile.Entry,
    to sink: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    var writer = BinaryPlistWriter()
    writer.prepare(for: countObjects(with: &writer))
    var (keyIndexes, valueIndexes): ([Int], [Int]) = ([], [])
    if let uuid = file.keybagUUID {
      keyIndexes.append(writer.write(Key.keybagUUID))
      valueIndexes.append(writer.write(uuid))
    }
    for kind in ItemKind.allCases {
      var entryIndexes: [Int] = []
      for entry in file.entries where entry.kind == kind {
        if entryIndexes.isEmpty { keyIndexes.append(writer.write(kind.rawValue)) }
        entryIndexes.append(Self.write(try load(entry), with: &writer))
        try writer.flush(atLeast: Self.chunkByteCount, to: sink)
      }
      if !entryIndexes.isEmpty { valueIndexes.append(writer.writeArray(of: entryIndexes)) }
    }
    let rootIndex = writer.writeDictionary(keys: keyIndexes, values: valueIndexes)
    try writer.finish(root: rootIndex, atLeast: Self.chunkByteCount, to: sink)
    try writer.flush(to: sink)
  }

  /// Writes an entry.
  ///
  /// - Returns: The index of the entry's dictionary among the objects.
  private static func write(_ entry: KeychainBackupFile.Entry, with writer: inout BinaryPlistWriter) -> Int {
    var (keyIndexes, valueIndexes): ([Int], [Int]) = ([], [])
    for (key, data) in [(Key.blob, entry.blob), (Key.persistentReference, entry.persistentReference)] {
      guard let data else { continue }
      keyIndexes.append(writer.write(key))
      valueIndexes.append(writer.write(data))
    }
    return writer.writeDictionary(keys: keyIndexes, values: valueIndexes)
  }

  /// Returns the number of objects: the root dictionary and its strings, an array for each kind, and a dictionary with
  /// its data for each entry.
  private func countObjects(with writer: inout BinaryPlistWriter) -> Int {
    var count = 1
    if let uuid = file.keybagUUID { count += writer.count(Key.keybagUUID) + writer.count(uuid) }
    for kind in Set(file.entries.map(\.kind)) { count += 1 + writer.count(kind.rawValue) }
    for entry in file.entries {
      count += 1
      if entry.hasBlob { count += 1 + writer.count(Key.blob) }
      if entry.hasPersistentReference { count += 1 + writer.count(Key.persistentReference) }
    }
    return count
  }
}
