package import Basics
import KeychainFormats
import SystemPackage

/// The payloads in a backup's directory, by their names.
extension DirectorySource {
  /// Lists the payloads: in the 256 directories that may hold some, or of an old backup in the directory itself. One that
  /// has another name than a device gives it is found in both, in small letters and capitals.
  ///
  /// - Parameter identifier: Of the only payload that is looked for; `nil` to list all.
  package func payloads(
    of directory: borrowing Descriptor, layout: BackupLayout, only identifier: String? = nil
  ) throws(BackupArchiveError) -> StoredPayloads {
    var payloads = StoredPayloads()
    do {
      let names = try system.names(in: directory)
      let hasBothLists = BackupLayout.allCases.allSatisfy { layout in
        names.contains { $0.text == layout.listPart.path }
      }
      let search = Search(layout: layout, identifier: identifier, hasBothLists: hasBothLists)
      try add(names, of: directory, inner: "", search, to: &payloads)
      for name in names where BackupPath.isPayloadDirectory(name.text) {
        let text = name.text
        if let identifier, !identifier.hasPrefix(text.lowercased()) { continue }
        guard try system.status(of: name, in: directory)?.kind == .directory else { continue }
        let inner = try system.openDirectory(name, in: directory)
        try add(try system.names(in: inner), of: inner, inner: text, search, to: &payloads)
      }
    } catch {
      throw BackupArchiveError(.unreadable, error.reason)
    }
    payloads.settle()
    return payloads
  }

  /// Where a payload lies whose own name leads to nothing; `nil` if it is not there, and if the names cannot be listed.
  func otherPath(of identifier: String, in directory: borrowing Descriptor, _ layout: BackupLayout) -> String? {
    (try? payloads(of: directory, layout: layout, only: identifier))?.otherPath(of: identifier)
  }

  private struct Search {
    let layout: BackupLayout
    let identifier: String?
    /// A device that was updated may have left its old list behind, and the payloads of it under their own names.
    let hasBothLists: Bool
  }

  /// - Parameter inner: The name of the directory in that of the backup, empty for the latter.
  private func add(
    _ names: [FileSystem.Name], of directory: borrowing Descriptor, inner: String, _ search: Search,
    to payloads: inout StoredPayloads
  ) throws(Errno) {
    let prefix = inner.lowercased()
    let ownLayout: BackupLayout = inner.isEmpty ? .mbdb : .manifestDB
    for file in names {
      let name = file.text
      guard name.utf8.count == 40 else { continue }
      let isExact = isFileIdentifier(name)
      let identifier = isExact ? name : name.lowercased()
      guard isExact || isFileIdentifier(identifier), identifier.hasPrefix(prefix) else { continue }
      if let wanted = search.identifier, wanted != identifier { continue }
      let isProper = isExact && inner == prefix
      let isOwn = isProper && ownLayout == search.layout
      if isProper, !isOwn, search.hasBothLists { continue }
      guard let status = try system.status(of: file, in: directory) else { continue }
      if isOwn {
        if status.kind == .file {
          payloads.add(name, byteCount: status.byteCount)
        } else {
          payloads.addIrregular(name)
        }
      } else if status.kind == .file {
        // What is no regular file is none of the backup's under a name that no device gives.
        payloads.addCandidate(inner.isEmpty ? name : "\(inner)/\(name)", for: identifier, byteCount: status.byteCount)
      }
    }
  }
}
