/// Writes a JSON document with a long array at its end, one element at a time.
///
/// The result has the same bytes as `JSONValue.write(to:)`. They are kept only in memory that is wiped.
package struct JSONStream: ~Copyable {
  /// The number of bytes that are collected before they are written.
  static let chunkByteCount = 32_768

  private var buffer = SensitiveBuffer()
  private var isArrayEmpty = true
  /// The closing brackets of the open objects and arrays, the innermost last.
  private var brackets: [String] = []

  /// Starts a document, up to the opening bracket of the array to fill.
  ///
  /// - Parameter document: The document. Its last value, at any depth, is an empty array, which `append(_:to:)` fills.
  package init(_ document: JSONValue) {
    var container: JSONValue? = document
    while let current = container {
      let fields = current.fields
      let names = fields?.map { name, _ in name }
      let values = fields?.map { _, value in value } ?? current.arrayValue ?? []
      buffer.append(fields == nil ? "[" : "{")
      brackets.append(fields == nil ? "]" : "}")
      for (index, value) in values.enumerated() {
        begin(names?[index], isFirst: index == 0)
        // The last value contains the array to fill, or is that array.
        if index < values.count - 1 { value.write(to: &buffer, indent: 2 * brackets.count) }
      }
      container = values.last
    }
  }

  /// Appends an element to the array.
  ///
  /// - Parameters:
  ///   - element: The element to append.
  ///   - output: Called with a chunk of bytes to write, once enough are collected. They are valid only during the call.
  package mutating func append<Failure: Error>(
    _ element: JSONValue, to output: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    begin(nil, isFirst: isArrayEmpty)
    isArrayEmpty = false
    element.write(to: &buffer, indent: 2 * brackets.count)
    guard buffer.count >= Self.chunkByteCount else { return }
    try buffer.withBytes(output)
    buffer.removeAll()
  }

  /// Ends the document, with additional fields at the end of its root object.
  package consuming func end<Failure: Error>(
    _ fields: [(String, JSONValue)] = [], to output: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    // The bracket of an empty array stays on the line of its opening bracket; all other brackets start a line.
    var startsLine = !isArrayEmpty
    while let bracket = brackets.popLast() {
      if startsLine { JSONValue.startLine(indentedBy: 2 * brackets.count, in: &buffer) }
      startsLine = true
      buffer.append(bracket)
      // If a single bracket is left, only the root object is open.
      for (name, value) in fields where brackets.count == 1 {
        begin(name, isFirst: false)
        value.write(to: &buffer, indent: 2)
      }
    }
    buffer.append("\n")
    try buffer.withBytes(output)
  }

  /// Starts the line of a value, with its name if it has one.
  private mutating func begin(_ name: String?, isFirst: Bool) {
    if !isFirst { buffer.append(",") }
    JSONValue.startLine(indentedBy: 2 * brackets.count, in: &buffer)
    guard let name else { return }
    JSONValue.write(name, to: &buffer)
    buffer.append(": ")
  }
}
