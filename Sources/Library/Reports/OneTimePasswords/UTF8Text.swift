/// A check of bytes that contain a secret. A `String` would be a copy that is not overwritten.
enum UTF8Text {
  /// Returns whether bytes are UTF-8 without a null character.
  static func isValid(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var decoder = UTF8()
    var iterator = bytes.makeIterator()
    while true {
      switch decoder.decode(&iterator) {
      case .scalarValue(let scalar): if scalar == "\0" { return false }
      case .emptyInput: return true
      case .error: return false
      }
    }
  }
}
