extension FileSystem {
  /// A name as the system keeps it: bytes with a NUL at the end, not always UTF-8.
  package typealias Name = [CChar]
}

extension String {
  package var systemName: FileSystem.Name { Array(utf8CString) }
}

extension FileSystem.Name {
  private var bytes: [UInt8] { dropLast().map { UInt8(bitPattern: $0) } }

  /// `nil` for bytes that are not UTF-8.
  package var validText: String? { String(validating: bytes, as: UTF8.self) }

  /// For people and for comparison: bytes that are not UTF-8 are replaced.
  package var text: String { String(decoding: bytes, as: UTF8.self) }
}
