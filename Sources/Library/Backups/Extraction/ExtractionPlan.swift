package import Basics
import KeychainCrypto
import KeychainFormats

/// The plan of an extraction: the selected files and their paths in the folder.
package struct ExtractionPlan: Sendable {
  /// A file or a link.
  struct Entry: Sendable {
    let location: FileLocation
    /// The index of its directory.
    let directory: Int
    let name: String
    /// Whether the entry has a stored payload.
    let isStored: Bool
    /// The reason not to write the entry, if the list alone shows one.
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
  /// The number of rows in any domain without a valid identifier, whose payload cannot be found.
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
    var names = ExtractionPaths(reserved: ExtractionFolder.ownNames)
    let listing = try list.listing { (file, location) throws(KeyhaulError) in
      guard let domain = file.domainBytes, let path = file.pathBytes, isSelected(file) else { return }
      rowCount += 1
      guard !ExtractionPaths.isTooLong(file) else { return }
      let parts = ExtractionPaths.parts(of: path)
      if file.kind == .directory {
        let index = try names.directory(domain, parts == nil ? nil : path[...])
        names.set(location, of: index)
      } else if let parts {
        _ = try names.directory(domain, parts.parent)
      }
    }
    rowWithoutIdentifierCount = listing.rowWithoutIdentifierCount
    var usedIdentifiers: Set<StoredPayloads.Name> = []
    _ = try list.listing { (file, location) throws(KeyhaulError) in
      guard let domain = file.domainBytes, let path = file.pathBytes, file.kind != .directory, isSelected(file) else {
        return
      }
      try add(file, domain, path, at: location, stored, &names, &usedIdentifiers)
    }
    directories = names.directories
  }

  private mutating func add(
    _ file: ListedFile, _ domain: [UInt8], _ path: [UInt8], at location: FileLocation, _ stored: StoredPayloads,
    _ names: inout ExtractionPaths, _ usedIdentifiers: inout Set<StoredPayloads.Name>
  ) throws(KeyhaulError) {
    switch file.kind {
    case .file: fileCount += 1
    case .link: linkCount += 1
    case .directory, .other: break
    }
    func refuse(_ code: KeyhaulError.Code, _ reason: String) {
      entries.append(
        Entry(location: location, directory: 0, name: "", isStored: false, refusal: KeyhaulError(code, reason)))
    }
    guard !ExtractionPaths.isTooLong(file) else {
      return refuse(
        .overLimit, "its name has more than \(HumanReadable.grouped(Int64(ExtractionPaths.maximumPathByteCount))) bytes"
      )
    }
    guard let parts = ExtractionPaths.parts(of: path) else { return refuse(.hostile, "it has no name of its own") }
    guard try ListedFile.identifier(domain: domain, path: path) == file.fileIdentifier else {
      return refuse(.hostile, "its identifier is not the hash of its domain and path")
    }
    if let name = StoredPayloads.Name(file.fileIdentifier), !usedIdentifiers.insert(name).inserted {
      return refuse(.hostile, "it is listed twice")
    }
    let directory = try names.directory(domain, parts.parent)
    let name = try names.name(of: parts.name, in: directory, identifier: file.fileIdentifier)
    let storedByteCount = stored.byteCount(of: file.fileIdentifier)
    entries.append(
      Entry(location: location, directory: directory, name: name, isStored: storedByteCount != nil, refusal: nil))
    if file.kind == .file { byteCount += storedByteCount ?? 0 }
  }

  /// Returns the path of an entry, relative to the folder.
  func path(of entry: Entry) -> String {
    (ExtractionPaths.names(of: entry.directory, in: directories) + [entry.name]).joined(separator: "/")
  }
}
