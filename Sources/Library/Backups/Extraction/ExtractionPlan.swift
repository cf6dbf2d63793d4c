package import Basics
import KeychainCrypto
import KeychainFormats

/// The plan of an extraction: the selected files and their paths in the folder.
package struct ExtractionPlan: Sendable {
  /// A file or a link.
  struct Entry: Sendable {
    let location: FileLocation
    /// The index of the entry's directory in `directories`.
    let directory: Int
    let name: String
    /// Whether the entry has a stored payload.
    let isStored: Bool
    /// The reason why the entry will not be written, if the list of files shows one.
    let refusal: KeyhaulError?
  }

  /// The entries except directories, in the list's order.
  private(set) var entries: [Entry] = []
  private(set) var directories: [ExtractionPaths.Directory] = []
  /// The number of files.
  package private(set) var fileCount = 0
  /// The number of symbolic links.
  package private(set) var linkCount = 0
  /// The total stored size of the files, which is an upper limit of the written size.
  package private(set) var byteCount: Int64 = 0
  /// The number of selected rows, including directories.
  package private(set) var rowCount = 0
  /// The number of rows without a valid identifier, in all domains. Their payloads cannot be found.
  package private(set) var rowWithoutIdentifierCount = 0

  /// The number of directories in the tree, without the folder itself.
  package var directoryCount: Int { directories.count - 1 }

  /// Creates a plan. Reads the list twice, directories first, so that no file or link has the name of a directory.
  ///
  /// - Parameters:
  ///   - list: The backup's list of files.
  ///   - stored: The stored payloads with their sizes, because recorded sizes can be wrong.
  ///   - isSelected: Returns whether to extract a file.
  /// - Throws: The errors of the list, or `.overLimit` if there are more directories than on any device.
  package init(
    of list: FileList, stored: StoredPayloads, selecting isSelected: (ListedFile) -> Bool
  ) throws(KeyhaulError) {
    var paths = ExtractionPaths(reserved: ExtractionFolder.ownNames)
    try addDirectories(of: list, to: &paths, selecting: isSelected)
    var usedIdentifiers: Set<StoredPayloads.Identifier> = []
    _ = try list.listing { (file, location) throws(KeyhaulError) in
      guard let domain = file.domainBytes, let path = file.pathBytes, file.kind != .directory, isSelected(file) else {
        return
      }
      switch file.kind {
      case .file: fileCount += 1
      case .link: linkCount += 1
      case .directory, .other: break
      }
      let storedByteCount = stored.byteCount(of: file.fileIdentifier)
      let entry = try Self.entry(
        for: file, domain: domain, path: path, at: location, isStored: storedByteCount != nil, in: &paths,
        &usedIdentifiers)
      entries.append(entry)
      if file.kind == .file, entry.refusal == nil { byteCount += storedByteCount ?? 0 }
    }
    directories = paths.directories
  }

  /// Adds the selected directories, and the directories of the selected files and links.
  private mutating func addDirectories(
    of list: FileList, to paths: inout ExtractionPaths, selecting isSelected: (ListedFile) -> Bool
  ) throws(KeyhaulError) {
    let listing = try list.listing { (file, location) throws(KeyhaulError) in
      guard let domain = file.domainBytes, let path = file.pathBytes, isSelected(file) else { return }
      rowCount += 1
      guard !ExtractionPaths.isTooLong(file) else { return }
      let parts = ExtractionPaths.parts(of: path)
      if file.kind == .directory {
        let isDomain = parts == nil
        let index = try paths.directory(domain, isDomain ? nil : path[...])
        paths.set(location, of: index)
      } else if let parts {
        _ = try paths.directory(domain, parts.parent)
      }
    }
    rowWithoutIdentifierCount = listing.rowWithoutIdentifierCount
  }

  /// Creates the entry of a file or link, with its path or the reason not to write it.
  private static func entry(
    for file: ListedFile, domain: [UInt8], path: [UInt8], at location: FileLocation, isStored: Bool,
    in paths: inout ExtractionPaths, _ usedIdentifiers: inout Set<StoredPayloads.Identifier>
  ) throws(KeyhaulError) -> Entry {
    func refused(_ code: KeyhaulError.Code, _ reason: String) -> Entry {
      Entry(location: location, directory: 0, name: "", isStored: false, refusal: KeyhaulError(code, reason))
    }
    guard !ExtractionPaths.isTooLong(file) else {
      let limit = HumanReadable.grouped(Int64(ExtractionPaths.maximumPathByteCount))
      return refused(.overLimit, "its name has more than \(limit) bytes")
    }
    guard let parts = ExtractionPaths.parts(of: path) else { return refused(.hostile, "it has no name of its own") }
    guard try ListedFile.identifier(domain: domain, path: path) == file.fileIdentifier else {
      return refused(.hostile, "its identifier is not the hash of its domain and path")
    }
    if let identifier = StoredPayloads.Identifier(file.fileIdentifier), !usedIdentifiers.insert(identifier).inserted {
      return refused(.hostile, "it is listed twice")
    }
    let directory = try paths.directory(domain, parts.parent)
    let name = try paths.name(of: parts.name, in: directory, identifier: file.fileIdentifier)
    return Entry(location: location, directory: directory, name: name, isStored: isStored, refusal: nil)
  }

  /// Returns the path of an entry, relative to the folder.
  func path(of entry: Entry) -> String {
    (ExtractionPaths.names(of: entry.directory, in: directories) + [entry.name]).joined(separator: "/")
  }
}
