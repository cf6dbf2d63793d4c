import KeychainFormats

/// The position of a file in its list: a row number or an offset.
package struct FilePlace: Sendable, Hashable {
  let number: Int64
}

/// The positions of listed files by identifier, for payloads in another order.
///
/// It needs about 30 bytes for each file, while a list of a million files has hundreds of megabytes.
package struct FileIndex: Sendable {
  private var places: [StoredPayloads.Name: FilePlace] = [:]
  /// The further positions of files that are listed more than once, which no device does.
  private var further: [StoredPayloads.Name: [FilePlace]] = [:]

  /// Creates an empty index.
  package init() {}

  /// Adds a file with its position in the list. Files without a valid identifier are skipped.
  package mutating func add(_ file: ListedFile, at place: FilePlace) {
    guard let name = StoredPayloads.Name(file.fileIdentifier) else { return }
    if places[name] == nil { places[name] = place } else { further[name, default: []].append(place) }
  }

  /// Returns whether a file with this identifier was added.
  func holds(_ file: ListedFile) -> Bool { StoredPayloads.Name(file.fileIdentifier).map { places[$0] != nil } ?? false }

  /// Returns the positions of a file in the list's order.
  package func places(of fileIdentifier: some StringProtocol) -> [FilePlace] {
    guard let name = StoredPayloads.Name(fileIdentifier), let first = places[name] else { return [] }
    return [first] + further[name, default: []]
  }
}

extension StoredPayloads {
  /// Returns whether a listed file has no payload although it is not empty.
  package func lacks(_ file: ListedFile) -> Bool {
    file.kind == .file && byteCount(of: file.fileIdentifier) == nil && (try? file.record())??.needsPayload ?? true
  }
}
