import Basics

/// The formats of container files, with their file extensions and signatures.
package enum ContainerFormat: String, Sendable, CaseIterable {
  /// An uncompressed tar.
  case tar
  /// A tar compressed with gzip, which is available on every system.
  case gzippedTar = "tar.gz"
  /// A tar compressed with Zstandard, which is faster and smaller.
  case zstandardTar = "tar.zst"
  /// A zip, in which each entry is compressed separately.
  case zip

  /// The file extensions, the usual one first.
  package var fileExtensions: [String] {
    switch self {
    case .tar: [".tar"]
    case .gzippedTar: [".tar.gz", ".tgz"]
    case .zstandardTar: [".tar.zst", ".tzst"]
    case .zip: [".zip"]
    }
  }

  /// The signatures at the start of a file. A tar has none, and is recognized by the checksum of its first header.
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

  /// Whether the format is a compressed tar.
  var isCompressedTar: Bool { self == .gzippedTar || self == .zstandardTar }

  /// Returns the format for a file's extension, or `nil` if the extension is unknown.
  package static func format(forFileName fileName: String) -> ContainerFormat? {
    let name = fileName.lowercased()
    return allCases.first { $0.fileExtensions.contains(where: name.hasSuffix) }
  }

  /// Creates the format for a file's extension, or a tar if the extension is unknown.
  package init(fileName: String) { self = Self.format(forFileName: fileName) ?? .tar }
}

/// The location from which a backup is read.
public enum BackupLocation: Sendable, Hashable {
  /// A backup's directory or a container file. The content determines which.
  case path(String)
  /// A stream on an open descriptor, such as standard input. The descriptor stays open.
  case stream(descriptor: Int32)
}

/// The location to which a backup is written.
package enum BackupDestination: Sendable, Hashable {
  /// A directory. A new or empty directory becomes the backup. In a directory with other content, a directory with the
  /// device identifier is created. An existing backup is replaced if this is allowed.
  case directory(String)
  /// A container file, which is replaced if this is allowed.
  case file(String, ContainerFormat)
  /// A tar on an open descriptor, such as standard output. The descriptor stays open. Bytes that were written
  /// cannot be taken back.
  case stream(descriptor: Int32)

  /// Creates a destination as the command line does. A path that ends with `/`, or at which a directory exists, is a
  /// directory. Any other path is a container file, whose extension determines the format.
  package init(path: String) {
    if path.hasSuffix("/") || FileSystem.real.isDirectory(path) {
      self = .directory(path)
    } else {
      self = .file(path, ContainerFormat(fileName: path))
    }
  }

  /// The path, or `nil` if the destination is a stream.
  package var path: String? {
    switch self {
    case .directory(let path), .file(let path, _): path
    case .stream: nil
    }
  }
}
