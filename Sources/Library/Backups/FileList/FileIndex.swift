import KeychainFormats

/// The location of a file in its list.
package struct FileLocation: Sendable, Hashable {
  /// The row number in `Manifest.db`, or the offset in `Manifest.mbdb`.
  let value: Int64
}

/// The locations of listed files by identifier, for payloads that are read in a different order.
///
/// The index needs about 30 bytes for each file, while a list of a million files has hundreds of megabytes.
package struct FileIndex: Sendable {
  private var locations: [StoredPayloads.Identifier: FileLocation] = [:]
  /// The second and later locations of files that are listed more than once, which no device does.
  private var duplicates: [StoredPayloads.Identifier: [FileLocation]] = [:]

  /// Creates an empty index.
  package init() {}

  /// Adds a file with its location in the list. Files without a valid identifier are skipped.
  package mutating func add(_ file: ListedFile, at location: FileLocation) {
    guard let identifier = StoredPayloads.Identifier(file.fileIdentifier) else { return }
    if locations[identifier] == nil {
      locations[identifier] = location
    } else {
      duplicates[identifier, default: []].append(location)
    }
  }

  /// Returns whether a file with this identifier was added.
  func contains(_ file: ListedFile) -> Bool {
    StoredPayloads.Identifier(file.fileIdentifier).map { locations[$0] != nil } ?? false
  }

  /// Returns the locations of a file in the list's order.
  package func locations(of fileIdentifier: some StringProtocol) -> [FileLocation] {
    guard let identifier = StoredPayloads.Identifier(fileIdentifier), let first = locations[identifier] else {
      return []
    }
    return [first] + duplicates[identifier, default: []]
  }
}

extension StoredPayloads {
  /// Returns whether a listed file has no payload although it is not empty.
  package func lacks(_ file: ListedFile) -> Bool {
    file.kind == .file && byteCount(of: file.fileIdentifier) == nil && (try? file.record())??.needsPayload ?? true
  }
}
