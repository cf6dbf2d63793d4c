/// The formats in which a backup's directory is packed into one file.
public enum ContainerFormat: String, Sendable, CaseIterable {
  /// Not compressed.
  case tar
  /// Compressed with gzip, for which every system has a tool.
  case gzippedTar = "tar.gz"
  /// Compressed with Zstandard, which is faster and smaller.
  case zstandardTar = "tar.zst"
  /// A zip, each entry compressed for itself.
  case zip

  /// The format that a file's name asks for; a name that asks for none gets a tar.
  public init(fileName: String) {
    let name = fileName.lowercased()
    self =
      if name.hasSuffix(".tar.gz") || name.hasSuffix(".tgz") {
        .gzippedTar
      } else if name.hasSuffix(".tar.zst") || name.hasSuffix(".tzst") {
        .zstandardTar
      } else if name.hasSuffix(".zip") {
        .zip
      } else {
        .tar
      }
  }
}
