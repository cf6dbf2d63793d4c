/// Writes a JSON document with a long array at its end, one element at a time.
///
/// The bytes equal those of `JSONValue.write(to:)`. They are only in memory that is wiped.
package struct JSONStream: ~Copyable {
  /// The number of bytes that are collected before they are written.
  static let chunkByteCount = 32_768

  private var buffer = SensitiveBuffer()
  private var isEmpty = true
  /// The closing brackets of the open objects and arrays, the innermost last.
  private var brackets: [String] = []

  /// Starts a document in which the array to fill is empty and comes last, at any depth.
  package init(_ document: JSONValue) {
    var last: JSONValue? = document
    while let value = last {
      let fields = value.fields
      let values = fields?.map(\.1) ?? value.arrayValue ?? []
      buffer.append(fields == nil ? "[" : "{")
      brackets.append(fields == nil ? "]" : "}")
      for (index, value) in values.enumerated() {
        begin(fields?[index].0, isFirst: index == 0)
        if index < values.count - 1 { value.write(to: &buffer, indent: 2 * brackets.count) }
      }
      last = values.last
    }
  }

  /// Appends an element to the array.
  ///
  /// - Parameters:
  ///   - element: The element.
  ///   - portion: Writes bytes, some kilobytes at a time. They are valid only during the call.
  package mutating func append<Failure: Error>(
    _ element: JSONValue, to portion: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    begin(nil, isFirst: isEmpty)
    isEmpty = false
    element.write(to: &buffer, indent: 2 * brackets.count)
    guard buffer.count >= Self.chunkByteCount else { return }
    try buffer.withBytes(portion)
    buffer.removeAll()
  }

  /// Ends the document, with additional fields after the value that contains the array.
  package consuming func end<Failure: Error>(
    _ fields: [(String, JSONValue)] = [], to portion: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    while let bracket = brackets.popLast() {
      if !isEmpty { JSONValue.startLine(indentedBy: 2 * brackets.count, in: &buffer) }
      isEmpty = false
      buffer.append(bracket)
      for (name, value) in fields where brackets.count == 1 {
        begin(name, isFirst: false)
        value.write(to: &buffer, indent: 2)
      }
    }
    buffer.append("\n")
    try buffer.withBytes(portion)
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
