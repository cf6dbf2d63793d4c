import KeychainFormats

/// Where a file stands in its list: a row, or an offset.
package struct FilePlace: Sendable, Hashable {
  let number: Int64
}

/// The places of listed files by their identifiers, for whoever comes upon payloads in another order than the list's.
///
/// Takes about thirty bytes a file, where a list of a million has hundreds of megabytes.
package struct FileIndex: Sendable {
  private var places: [StoredPayloads.Name: FilePlace] = [:]
  /// Of what is listed more than once, which no device does.
  private var further: [StoredPayloads.Name: [FilePlace]] = [:]

  /// Creates an index of no file.
  package init() {}

  /// Enters a file at its place in the list. A file whose identifier is none is passed over.
  package mutating func add(_ file: ListedFile, at place: FilePlace) {
    guard let name = StoredPayloads.Name(file.fileIdentifier) else { return }
    if places[name] == nil { places[name] = place } else { further[name, default: []].append(place) }
  }

  /// Whether a file with this identifier was added.
  func holds(_ file: ListedFile) -> Bool { StoredPayloads.Name(file.fileIdentifier).map { places[$0] != nil } ?? false }

  /// In the list's order.
  package func places(of fileIdentifier: some StringProtocol) -> [FilePlace] {
    guard let name = StoredPayloads.Name(fileIdentifier), let first = places[name] else { return [] }
    return [first] + further[name, default: []]
  }
}

extension StoredPayloads {
  /// Whether a listed file should be stored and is not. An empty one need not be.
  package func lacks(_ file: ListedFile) -> Bool {
    file.kind == .file && byteCount(of: file.fileIdentifier) == nil && (try? file.record())??.needsPayload ?? true
  }
}
