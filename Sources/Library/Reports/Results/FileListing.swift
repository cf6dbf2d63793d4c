import KeyhaulKit

/// The list of a backup's files at the end of `inspect --tree -v`, with the names that `export --domain D --path P` expects.
///
/// Each file is read from the manifest when it is written, so only the positions of the files are in memory.
struct FileListing: StreamedSection {
  let fileList: FileList
  let index: FilesByDirectory
  let stored: StoredPayloads

  let member = "file_list"

  private static let sizeColumns = 15

  /// Calls a closure with each file that has a domain and a path.
  private func forEachFile<Failure: Error>(
    failure: (KeyhaulError) -> Failure,
    _ body: (_ domain: String, _ path: String, _ file: ListedFile) throws(Failure) -> Void
  ) throws(Failure) {
    func convertingErrors<Value>(of read: () throws(KeyhaulError) -> Value) throws(Failure) -> Value {
      do throws(KeyhaulError) { return try read() } catch { throw failure(error) }
    }
    let reader = try convertingErrors { () throws(KeyhaulError) in try fileList.reader() }
    for position in index.inOrder {
      let file = try convertingErrors { () throws(KeyhaulError) in try reader.file(at: position) }
      guard let file, let domain = file.domain, let path = file.relativePath else { continue }
      try body(domain, path, file)
    }
  }

  private func byteCount(of file: ListedFile) -> Int64 { stored.byteCount(of: file.fileIdentifier) ?? 0 }

  /// Calls a closure with each line: a domain, then its files with their sizes. Names are not shortened, because
  /// the user may copy them.
  func forEachLine<Failure: Error>(
    style: TextStyle, failure: (KeyhaulError) -> Failure, _ body: (String) throws(Failure) -> Void
  ) throws(Failure) {
    var lastDomain: String?
    try forEachFile(failure: failure) { (domain, path, file) throws(Failure) in
      if domain != lastDomain {
        try body("")
        try body(style.painted(style.adapted(UntrustedText.escaped(domain)), .bold))
        lastDomain = domain
      }
      let size = stored.lacks(file) ? "missing" : HumanReadable.grouped(byteCount(of: file))
      try body(
        DisplayWidth.padded(size, columns: Self.sizeColumns, rightAligned: true) + "  "
          + style.adapted(UntrustedText.escaped(path)))
    }
  }

  func forEachElement<Failure: Error>(
    failure: (KeyhaulError) -> Failure, _ body: (JSONValue) throws(Failure) -> Void
  ) throws(Failure) {
    try forEachFile(failure: failure) { (domain, path, file) throws(Failure) in
      try body([
        "domain": .string(domain), "path": .string(path), "bytes": .integer(byteCount(of: file)),
        "missing": .boolean(stored.lacks(file)),
      ])
    }
  }
}
