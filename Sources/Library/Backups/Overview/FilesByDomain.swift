/// The files that a backup lists, counted by their domains: of an app, of a group of apps, of a part of iOS.
public struct FilesByDomain: Sendable {
  /// A domain with what is listed in it.
  public struct Domain: Sendable, Equatable {
    /// As the list has it: `AppDomain-org.example.app`; hostile.
    public let name: String
    /// Listed files; directories and links are not counted.
    public var fileCount = 0
    /// As stored: an encrypted file has up to sixteen bytes of padding.
    public var storedByteCount: Int64 = 0
    /// Files of which nothing is stored though they are not empty.
    public var missingCount = 0

    /// The identifier of an app, of a group or of a plugin: what stands after the first hyphen.
    public var identifier: Substring? {
      name.firstIndex(of: "-").map { name[name.index(after: $0)...] }.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Sizes of a container's entries are claims: their sum must not trap.
    fileprivate mutating func add(_ byteCount: Int64) {
      let (sum, overflow) = storedByteCount.addingReportingOverflow(byteCount)
      storedByteCount = overflow ? .max : sum
    }
  }

  private var domains: [String: Domain] = [:]

  /// Creates a count of no file.
  public init() {}

  /// Counts a file; directories, links and what has no domain are passed over.
  ///
  /// - Parameters:
  ///   - file: A row of the list.
  ///   - stored: The payloads that are stored, which give the sizes.
  public mutating func add(_ file: ListedFile, stored: StoredPayloads) {
    guard file.kind == .file, let name = file.domain else { return }
    let byteCount = stored.byteCount(of: file.fileIdentifier)
    let isMissing = byteCount == nil && stored.lacks(file)
    domains[name, default: Domain(name: name)].fileCount += 1
    domains[name]?.add(byteCount ?? 0)
    if isMissing { domains[name]?.missingCount += 1 }
  }

  /// The largest first, those of one size by the number of their files and then by their names.
  public var largestFirst: [Domain] {
    domains.values.sorted {
      ($0.storedByteCount, $0.fileCount, $1.name) > ($1.storedByteCount, $1.fileCount, $0.name)
    }
  }
}
