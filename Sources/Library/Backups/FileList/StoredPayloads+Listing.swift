import KeychainFormats

extension StoredPayloads {
  /// Whether a listed file should be stored and is not. An empty one need not be.
  public func lacks(_ file: ListedFile) -> Bool {
    file.kind == .file && byteCount(of: file.fileIdentifier) == nil && (try? file.record())??.needsPayload ?? true
  }
}
