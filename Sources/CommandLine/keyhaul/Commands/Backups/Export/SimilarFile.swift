import KeyhaulKit

/// A suggestion for a requested file that does not exist: the most similar domain or path in the backup.
struct SimilarFile {
  private let domain: String
  private let path: String
  private let similarDomain: String?
  private let similarPath: String?
  /// Whether the backup has the requested domain.
  private let hasDomain: Bool

  /// The maximum number of paths to compare by edit distance. Further paths are suggested only if they differ in case or
  /// have the same file name.
  private static let maximumComparedCount = 5_000

  init(domain: String, path: String, in fileList: FileList) throws(KeyhaulError) {
    self.domain = domain
    self.path = path
    var domains: Set<String> = []
    var candidates: [String] = []
    /// A path that differs only in case, or else the first path with the same last component.
    var bestMatch: String?
    let fileName = path.split(separator: "/").last
    try fileList.forEachFile { file in
      guard let candidateDomain = file.domain, let candidatePath = file.relativePath else { return }
      domains.insert(candidateDomain)
      guard candidateDomain == domain, file.kind == .file else { return }
      let differsOnlyInCase = candidatePath.lowercased() == path.lowercased()
      let hasSameName = candidatePath.split(separator: "/").last == fileName
      if differsOnlyInCase || (bestMatch == nil && hasSameName) { bestMatch = candidatePath }
      if candidates.count < Self.maximumComparedCount { candidates.append(candidatePath) }
    }
    hasDomain = domains.contains(domain)
    similarDomain = hasDomain ? nil : EditDistance.nearest(to: domain, among: domains.sorted())
    similarPath = bestMatch ?? EditDistance.nearest(to: path, among: candidates)
  }

  /// Returns the error for the requested file, which suggests the similar domain or path.
  func error(inBackup backup: String) -> CommandError {
    let listingAdvice = "keyhaul inspect \(ShellQuoting.quote(backup)) --tree -v lists every file"
    guard hasDomain else {
      return CommandError(
        .noMatch, "\(backup) has no domain \(domain)", why: similarDomain.map { "\"\($0)\" is similar" },
        try: similarDomain.map { "--domain \(ShellQuoting.quote($0))" } ?? listingAdvice)
    }
    return CommandError(
      .noMatch, "\(backup) has no file \(path) in \(domain)", why: similarPath.map { "\"\($0)\" is similar" },
      try: similarPath.map { "--path \(ShellQuoting.quote($0))" } ?? listingAdvice)
  }
}
