extension FileSystem {
  /// A file name as the system stores it: bytes with a NUL at the end, not always UTF-8.
  package typealias Name = [CChar]
}

extension String {
  package var systemName: FileSystem.Name { Array(utf8CString) }
}

extension FileSystem.Name {
  private var bytes: [UInt8] { dropLast().map { UInt8(bitPattern: $0) } }

  /// The name as text, or `nil` if it is not UTF-8.
  package var validText: String? { String(validating: bytes, as: UTF8.self) }

  /// The name for display and comparison; bytes that are not UTF-8 are replaced.
  package var text: String { String(decoding: bytes, as: UTF8.self) }
}
