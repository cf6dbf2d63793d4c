/// The document of an object with an array that may be too long to be held: each element is written when it is made.
///
/// The bytes are those of `JSONValue.write(to:)`, and in memory that is wiped alone.
package struct JSONStream: ~Copyable {
  /// How much waits to be written, in bytes.
  private static let portionByteCount = 32_768

  private var buffer = SensitiveBuffer()
  private var isEmpty = true

  /// Begins a document.
  ///
  /// - Parameters:
  ///   - fields: Those before the array.
  ///   - array: The array's name.
  package init(_ fields: [(String, JSONValue)], array: String) {
    buffer.append("{")
    for (name, value) in fields {
      beginField(name)
      value.write(to: &buffer, indent: 2)
      buffer.append(",")
    }
    beginField(array)
    buffer.append("[")
  }

  /// Adds an element to the array.
  ///
  /// - Parameter portion: Takes what is written, some kilobytes at a time; lent.
  package mutating func append<Failure: Error>(
    _ element: JSONValue, to portion: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    if !isEmpty { buffer.append(",") }
    isEmpty = false
    JSONValue.startLine(indentedBy: 4, in: &buffer)
    element.write(to: &buffer, indent: 4)
    guard buffer.count >= Self.portionByteCount else { return }
    try buffer.withBytes(portion)
    buffer.removeAll()
  }

  /// Ends the document.
  ///
  /// - Parameter fields: Those after the array.
  package consuming func end<Failure: Error>(
    _ fields: [(String, JSONValue)] = [], to portion: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    if !isEmpty { JSONValue.startLine(indentedBy: 2, in: &buffer) }
    buffer.append("]")
    for (name, value) in fields {
      buffer.append(",")
      beginField(name)
      value.write(to: &buffer, indent: 2)
    }
    buffer.append("\n}\n")
    try buffer.withBytes(portion)
  }

  private mutating func beginField(_ name: String) {
    JSONValue.startLine(indentedBy: 2, in: &buffer)
    JSONValue.write(name, to: &buffer)
    buffer.append(": ")
  }
}
