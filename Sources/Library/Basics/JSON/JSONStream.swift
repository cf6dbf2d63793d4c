/// A document with an array at its end that may be too long to be held: each element is written when it is made.
///
/// The bytes are those of `JSONValue.write(to:)`, and in memory that is wiped alone.
package struct JSONStream: ~Copyable {
  /// How much waits to be written, in bytes.
  static let portionByteCount = 32_768

  private var buffer = SensitiveBuffer()
  private var isEmpty = true
  /// What ends the objects and arrays that are open, the innermost last.
  private var brackets: [String] = []

  /// Begins a document whose last value, or the last one of that, and so on, is the array, still empty.
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

  /// Adds an element to the array; `portion` takes what is written, some kilobytes at a time, lent.
  package mutating func append<Failure: Error>(
    _ element: JSONValue, to portion: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    begin(nil, isFirst: isEmpty)
    isEmpty = false
    element.write(to: &buffer, indent: 2 * brackets.count)
    guard buffer.count >= Self.portionByteCount else { return }
    try buffer.withBytes(portion)
    buffer.removeAll()
  }

  /// Ends the document, with fields of its own after the value that holds the array.
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

  /// Begins the line of a value, with its name where it has one.
  private mutating func begin(_ name: String?, isFirst: Bool) {
    if !isFirst { buffer.append(",") }
    JSONValue.startLine(indentedBy: 2 * brackets.count, in: &buffer)
    guard let name else { return }
    JSONValue.write(name, to: &buffer)
    buffer.append(": ")
  }
}
