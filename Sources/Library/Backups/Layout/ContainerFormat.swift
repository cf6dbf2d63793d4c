import Basics

/// The formats for packing a backup's directory into one file, with the name endings and signatures that identify them.
package enum ContainerFormat: String, Sendable, CaseIterable {
  /// Not compressed.
  case tar
  /// Compressed with gzip, for which every system has a tool.
  case gzippedTar = "tar.gz"
  /// Compressed with Zstandard, which is faster and smaller.
  case zstandardTar = "tar.zst"
  /// A zip, each entry compressed for itself.
  case zip

  /// What names of such files end in; the first one is the usual one.
  package var endings: [String] {
    switch self {
    case .tar: [".tar"]
    case .gzippedTar: [".tar.gz", ".tgz"]
    case .zstandardTar: [".tar.zst", ".tzst"]
    case .zip: [".zip"]
    }
  }

  /// What such a file begins with; none for a tar, which is known by the checksum of its first header.
  ///
  /// Sources: RFC 1952, RFC 8878, PKWARE APPNOTE 4.3.7 and 4.3.16.
  var signatures: [[UInt8]] {
    switch self {
    case .tar: []
    case .gzippedTar: [[0x1F, 0x8B]]
    case .zstandardTar: [[0x28, 0xB5, 0x2F, 0xFD]]
    case .zip: [[0x50, 0x4B, 3, 4], [0x50, 0x4B, 5, 6]]
    }
  }

  /// Whether the file is a tar that was compressed as a whole.
  var isCompressedTar: Bool { self == .gzippedTar || self == .zstandardTar }

  /// The format that a file's name asks for; `nil` if it asks for none.
  package static func named(by fileName: String) -> ContainerFormat? {
    let name = fileName.lowercased()
    return allCases.first { $0.endings.contains(where: name.hasSuffix) }
  }

  /// The format that a file's name asks for; a tar if it asks for none.
  package init(fileName: String) { self = Self.named(by: fileName) ?? .tar }
}

/// Where a backup is read from.
public enum ArchiveLocation: Sendable, Hashable {
  /// A backup's directory, or one file made from such a directory. Its content decides which, never its name.
  case path(String)
  /// A stream on an open descriptor, such as standard input; it stays open.
  case stream(descriptor: Int32)
}

/// Where a backup is written to.
package enum ArchiveDestination: Sendable, Hashable {
  /// A directory that is absent or empty becomes the backup; one that holds other things gets a directory named after
  /// the device's identifier; one that holds a backup is replaced, where that is allowed.
  case directory(String)
  /// One file of this format, replaced where there is one already and that is allowed.
  case file(String, ContainerFormat)
  /// A tar on an open descriptor, such as standard output; it stays open. Nothing can be taken back from a stream.
  case stream(descriptor: Int32)

  /// Chooses as the command line does: a path that ends in `/` or names an existing directory is a directory, anything
  /// else one file whose name tells the format.
  package init(path: String) {
    if path.hasSuffix("/") || FileSystem.real.isDirectory(path) {
      self = .directory(path)
    } else {
      self = .file(path, ContainerFormat(fileName: path))
    }
  }

  /// The path; `nil` for a stream.
  package var path: String? {
    switch self {
    case .directory(let path), .file(let path, _): path
    case .stream: nil
    }
  }
}
