package import Basics
import SystemPackage

extension DirectorySource {
  /// Lists the payloads. In the newer layout, they are in up to 256 directories. In the older layout, they are in the
  /// backup's own directory.
  ///
  /// A file with a name in upper case is a candidate for a payload that is missing from its usual path. So is a file at
  /// a path of the other layout, unless the backup has file lists of both layouts.
  ///
  /// - Parameter identifier: The only payload to find, or `nil` to list all.
  package func payloads(
    of directory: borrowing OwnedFileDescriptor, layout: BackupLayout, only identifier: String? = nil
  ) throws(KeyhaulError) -> StoredPayloads {
    var payloads = StoredPayloads()
    do {
      let names = try system.names(in: directory)
      let hasBothLists = BackupLayout.allCases.allSatisfy { layout in
        names.contains { $0.text == layout.listPart.path }
      }
      let search = Search(layout: layout, onlyIdentifier: identifier, hasBothLists: hasBothLists)
      try add(names, of: directory, named: "", search, to: &payloads)
      for name in names where BackupPath.isPayloadDirectory(name.text) {
        let directoryName = name.text
        if let identifier, !identifier.hasPrefix(directoryName.lowercased()) { continue }
        guard try system.status(of: name, in: directory)?.kind == .directory else { continue }
        let payloadDirectory = try system.openDirectory(name, in: directory)
        let payloadNames = try system.names(in: payloadDirectory)
        try add(payloadNames, of: payloadDirectory, named: directoryName, search, to: &payloads)
      }
    } catch {
      throw KeyhaulError(.unreadable, error.reason, of: error)
    }
    payloads.resolveCandidates()
    return payloads
  }

  /// Returns the path of a payload at an unusual path, or `nil` if there is none or the files cannot be listed.
  func unusualPath(of identifier: String, in directory: borrowing OwnedFileDescriptor, _ layout: BackupLayout)
    -> String?
  {
    (try? payloads(of: directory, layout: layout, only: identifier))?.unusualPath(of: identifier)
  }

  /// The payloads to find, and the layout that determines their usual paths.
  private struct Search {
    let layout: BackupLayout
    /// The only payload to find, or `nil` to list all.
    let onlyIdentifier: String?
    /// Whether the backup has file lists of both layouts. An updated device may leave its old list with the payloads.
    let hasBothLists: Bool
  }

  /// Adds the payloads of a directory.
  ///
  /// - Parameter directoryName: The name of the directory in the backup, empty for the backup's own directory.
  private func add(
    _ names: [FileSystem.Name], of directory: borrowing OwnedFileDescriptor, named directoryName: String,
    _ search: Search,
    to payloads: inout StoredPayloads
  ) throws(Errno) {
    let prefix = directoryName.lowercased()
    let directoryLayout: BackupLayout = directoryName.isEmpty ? .mbdb : .manifestDB
    for name in names {
      let text = name.text
      guard text.utf8.count == 40 else { continue }
      let isLowercase = isFileIdentifier(text)
      let identifier = isLowercase ? text : text.lowercased()
      guard isLowercase || isFileIdentifier(identifier), identifier.hasPrefix(prefix) else { continue }
      if let onlyIdentifier = search.onlyIdentifier, onlyIdentifier != identifier { continue }
      let isUsualInItsLayout = isLowercase && directoryName == prefix
      let isUsual = isUsualInItsLayout && directoryLayout == search.layout
      // The payload belongs to the other layout's file list.
      if isUsualInItsLayout, !isUsual, search.hasBothLists { continue }
      guard let status = try system.status(of: name, in: directory) else { continue }
      switch (isUsual, status.kind) {
      case (true, .file): payloads.add(text, byteCount: status.byteCount)
      case (true, _): payloads.addIrregular(text)
      case (false, .file):
        let path = directoryName.isEmpty ? text : "\(directoryName)/\(text)"
        payloads.addCandidate(path, for: identifier, byteCount: status.byteCount)
      case (false, _): break
      }
    }
  }
}
