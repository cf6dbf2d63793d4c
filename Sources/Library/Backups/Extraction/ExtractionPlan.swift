package import Basics
import KeychainCrypto
import KeychainFormats

/// Which files of a backup go where in a folder, worked out before any is written.
package struct ExtractionPlan: Sendable {
  /// A file or a link.
  struct Entry: Sendable {
    let place: FilePlace
    /// The number of its directory.
    let directory: Int
    let name: String
    /// Whether something is stored for it.
    let isStored: Bool
    /// Why nothing is written of it, known from the list alone.
    let refusal: KeyhaulError?
  }

  /// Files, links and what is neither, in the list's order; directories are apart.
  private(set) var entries: [Entry] = []
  private(set) var directories: [TreeNames.Directory] = []
  /// Files with contents.
  package private(set) var fileCount = 0
  /// Symbolic links.
  package private(set) var linkCount = 0
  /// Of the files as they are stored: what is written is no more than that.
  package private(set) var byteCount: Int64 = 0
  /// Rows of the list that were chosen, directories among them.
  package private(set) var rowCount = 0
  /// Rows of the list, of whatever domain, whose identifier is none: what they stand for cannot be found.
  package private(set) var rowWithoutIdentifierCount = 0

  /// How many directories the tree has, without the folder itself.
  package var directoryCount: Int { directories.count - 1 }

  /// Goes through the list twice: directories first, so that no file or link has the name of one.
  ///
  /// - Parameters:
  ///   - list: The backup's list of files.
  ///   - stored: The payloads that are stored, for their sizes: what the list says of a size is no reason to refuse.
  ///   - choosing: Whether a file is wanted.
  /// - Throws: As reading the list does; `.overLimit` for more directories than any device has.
  package init(
    of list: FileList, stored: StoredPayloads, choosing isChosen: (ListedFile) -> Bool
  ) throws(KeyhaulError) {
    var names = TreeNames(reserved: ExtractionFolder.ownNames)
    let listing = try list.listing { (file, place) throws(KeyhaulError) in
      guard let domain = file.domainBytes, let path = file.pathBytes, isChosen(file) else { return }
      rowCount += 1
      guard !TreeNames.isTooLong(file) else { return }
      let parts = TreeNames.parts(of: path)
      if file.kind == .directory {
        let number = try names.directory(domain, parts == nil ? nil : path[...])
        names.set(place, of: number)
      } else if let parts {
        _ = try names.directory(domain, parts.parent)
      }
    }
    rowWithoutIdentifierCount = listing.rowWithoutIdentifierCount
    var seen: Set<StoredPayloads.Name> = []
    _ = try list.listing { (file, place) throws(KeyhaulError) in
      guard let domain = file.domainBytes, let path = file.pathBytes, file.kind != .directory, isChosen(file) else {
        return
      }
      try add(file, domain, path, at: place, stored, &names, &seen)
    }
    directories = names.directories
  }

  private mutating func add(
    _ file: ListedFile, _ domain: [UInt8], _ path: [UInt8], at place: FilePlace, _ stored: StoredPayloads,
    _ names: inout TreeNames, _ seen: inout Set<StoredPayloads.Name>
  ) throws(KeyhaulError) {
    switch file.kind {
    case .file: fileCount += 1
    case .link: linkCount += 1
    case .directory, .other: break
    }
    func refuse(_ code: KeyhaulError.Code, _ reason: String) {
      entries.append(
        Entry(place: place, directory: 0, name: "", isStored: false, refusal: KeyhaulError(code, reason)))
    }
    guard !TreeNames.isTooLong(file) else {
      return refuse(
        .overLimit, "its name has more than \(HumanReadable.grouped(Int64(TreeNames.maximumPathByteCount))) bytes")
    }
    guard let parts = TreeNames.parts(of: path) else { return refuse(.hostile, "it has no name of its own") }
    guard try ListedFile.identifier(domain: domain, path: path) == file.fileIdentifier else {
      return refuse(.hostile, "its identifier is not the hash of its domain and path")
    }
    if let name = StoredPayloads.Name(file.fileIdentifier), !seen.insert(name).inserted {
      return refuse(.hostile, "it is listed twice")
    }
    let directory = try names.directory(domain, parts.parent)
    let name = try names.name(of: parts.name, in: directory, identifier: file.fileIdentifier)
    let storedByteCount = stored.byteCount(of: file.fileIdentifier)
    entries.append(
      Entry(place: place, directory: directory, name: name, isStored: storedByteCount != nil, refusal: nil))
    if file.kind == .file { byteCount += storedByteCount ?? 0 }
  }

  /// Where an entry goes, relative to the folder.
  func path(of entry: Entry) -> String {
    (TreeNames.names(of: entry.directory, in: directories) + [entry.name]).joined(separator: "/")
  }
}
