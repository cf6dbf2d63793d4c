/// Counts the files of a backup, and adds up their sizes, for each domain.
package struct FilesByDomain: Sendable {
  /// A domain and its files.
  package struct Domain: Sendable, Equatable {
    /// The name in the file list, such as `AppDomain-org.example.app`. Untrusted.
    package let name: String
    /// The number of files, without directories and links.
    package var fileCount = 0
    /// The stored size in bytes. An encrypted file has up to 16 bytes of padding.
    package var storedByteCount: Int64 = 0
    /// The number of files that are not empty but have no payload.
    package var missingCount = 0

    /// The identifier of an app, a group, or a plugin: the part after the first hyphen.
    package var identifier: Substring? {
      name.firstIndex(of: "-").map { name[name.index(after: $0)...] }.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Adds a size. Sizes in containers are untrusted, so the sum must not trap.
    fileprivate mutating func add(_ byteCount: Int64) {
      let (sum, overflow) = storedByteCount.addingReportingOverflow(byteCount)
      storedByteCount = overflow ? .max : sum
    }
  }

  private var domains: [String: Domain] = [:]

  /// Creates an empty count.
  package init() {}

  /// Counts a file. Directories, links, and entries without a domain are ignored.
  ///
  /// - Parameters:
  ///   - file: A row of the file list.
  ///   - stored: The stored payloads with their sizes.
  package mutating func add(_ file: ListedFile, stored: StoredPayloads) {
    guard file.kind == .file, let name = file.domain else { return }
    let byteCount = stored.byteCount(of: file.fileIdentifier)
    let isMissing = byteCount == nil && stored.lacks(file)
    domains[name, default: Domain(name: name)].fileCount += 1
    domains[name]?.add(byteCount ?? 0)
    if isMissing { domains[name]?.missingCount += 1 }
  }

  /// The domains, the largest first, then by the number of files, then by name.
  package var largestFirst: [Domain] {
    domains.values.sorted {
      ($0.storedByteCount, $0.fileCount, $1.name) > ($1.storedByteCount, $1.fileCount, $0.name)
    }
  }
}
